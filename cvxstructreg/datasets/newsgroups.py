"""20 Newsgroups, from a folder or through scikit-learn's fetcher, in the same order either way."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from cvxstructreg.datasets.locating import DataNotFoundError, PathLike, Source, found, missing
from cvxstructreg.datasets.reading import DataFormatError, Record, read_json_lines

SOURCE = Source(
    title="20 Newsgroups",
    path="20newsgroups/20news_bydate.jsonl.gz",
    content=(
        "one JSON object per line with id (newsgroup/number), split (train or test), label (newsgroup) and text (the "
        "raw post with its headers), made from the archive 20news-bydate"
    ),
    origin="http://qwone.com/~jason/20Newsgroups/; with a network, scikit-learn downloads it without further steps",
)

#: Pairs of newsgroups that papers classify, by short names.
NEWSGROUP_PAIRS: dict[str, tuple[str, str]] = {
    "science": ("sci.med", "sci.space"),
    "sports": ("rec.sport.baseball", "rec.sport.hockey"),
    "religion": ("alt.atheism", "soc.religion.christian"),
    "computer": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
    "windows": ("comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware"),
}
SUBSETS = {"train": ("train",), "test": ("test",), "all": ("train", "test")}
PARTS = ("headers", "footers", "quotes")
_DESCR = """20 Newsgroups, sorted by date.

18,846 posts of 1993 to twenty newsgroups, 11,314 for training and 7,532 later ones for testing. Order and labels are
those of scikit-learn's fetch_20newsgroups: labels number the chosen newsgroups in alphabetical order.
"""


def fetch_20newsgroups(
    subset: str = "train",
    categories: str | Iterable[str] | None = None,
    *,
    remove: Iterable[str] = (),
    shuffle: bool = True,
    random_state: Any = 42,
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    verbose: bool = False,
) -> Bunch:
    """Load 20 Newsgroups: from the data folder if it is there, else through scikit-learn's fetcher.

    Documents come in the same order, and with the same labels, from both.

    Parameters
    ----------
    subset : {"train", "test", "all"}
    categories : str or list of str, optional
        Newsgroups, or the short name of a pair in `NEWSGROUP_PAIRS`: science, sports, religion, computer, windows.
    remove : subset of ("headers", "footers", "quotes")
        Parts of the posts to leave out, as scikit-learn does it.
    shuffle, random_state
        As in scikit-learn. Without shuffling the order is scikit-learn's unshuffled one, in which newsgroups mix too.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder, then scikit-learn's own.
    download_if_missing : bool
        Whether scikit-learn may download the data.
    verbose : bool
        Show progress while reading.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (list of str), target, target_names, ids (newsgroup/number), filenames, split ("train" or "test" of each
        document) and DESCR.

    Examples
    --------
    >>> import tempfile
    >>> from cvxstructreg.datasets import write_json_lines
    >>> posts = [("sci.med/1", "A cure"), ("sci.space/2", "A rocket"), ("rec.autos/3", "A car")]
    >>> records = [{"id": i, "label": i.split("/")[0], "split": "train", "text": text} for i, text in posts]
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_json_lines(f"{home}/20newsgroups/20news_bydate.jsonl.gz", records)
    ...     bunch = fetch_20newsgroups("train", "science", data_home=home)
    >>> bunch.target_names, sorted(bunch.data)
    (['sci.med', 'sci.space'], ['A cure', 'A rocket'])
    """
    if subset not in SUBSETS:
        raise ValueError(f'subset must be "train", "test" or "all", not {subset!r}')
    removed = _checked_parts(remove)
    chosen = _category_names(categories)
    path = found(SOURCE, data_home)
    if path is None:
        bunch = _fetched(subset, data_home, download_if_missing)
    else:
        fields = {"id": str, "split": str, "label": str, "text": str}
        bunch = _in_fetched_order(read_json_lines(path, fields, verbose), subset, path)
    bunch = _restricted(bunch, chosen)
    if removed:
        bunch.data = _stripped(bunch.data, removed)
    if shuffle:
        order = np.arange(len(bunch.data))
        check_random_state(random_state).shuffle(order)
        bunch = _reordered(bunch, order)
    return bunch


def _checked_parts(remove: Iterable[str]) -> tuple[str, ...]:
    parts = (remove,) if isinstance(remove, str) else tuple(remove)
    for part in parts:
        if part not in PARTS:
            raise ValueError(f"remove has {part!r}; it may have {', '.join(PARTS)}")
    return parts


def _category_names(categories: str | Iterable[str] | None) -> list[str] | None:
    if categories is None:
        return None
    if isinstance(categories, str):
        return list(NEWSGROUP_PAIRS.get(categories, (categories,)))
    names = list(categories)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"categories must be newsgroups or the name of one pair, not {names!r}")
    return names


def _in_fetched_order(records: list[Record], subset: str, path: Path) -> Bunch:
    """Return the posts in the order of scikit-learn's cache: by file name, then shuffled once with seed 0."""
    names = sorted({record["label"] for record in records})
    chosen: list[Record] = []
    for split in SUBSETS[subset]:
        part = sorted((record for record in records if record["split"] == split), key=lambda r: r["id"].split("/"))
        if not part:
            raise DataFormatError(f'{path} has no document whose split is "{split}"; get the file again')
        order = np.arange(len(part))
        np.random.RandomState(0).shuffle(order)
        chosen += [part[i] for i in order]
    position = {name: number for number, name in enumerate(names)}
    ids = np.array([record["id"] for record in chosen])
    return Bunch(
        data=[record["text"] for record in chosen],
        target=np.array([position[record["label"]] for record in chosen], dtype=np.int64),
        target_names=names,
        ids=ids,
        filenames=ids.copy(),
        split=np.array([record["split"] for record in chosen]),
        DESCR=_DESCR,
    )


def _restricted(bunch: Bunch, categories: list[str] | None) -> Bunch:
    if categories is None:
        return bunch
    unknown = [name for name in categories if name not in bunch.target_names]
    if unknown:
        known = f"{', '.join(bunch.target_names)}, or a pair: {', '.join(NEWSGROUP_PAIRS)}"
        raise ValueError(f"unknown newsgroup {unknown[0]!r}; choose from {known}")
    kept = sorted({bunch.target_names.index(name) for name in categories})
    smaller = _reordered(bunch, np.flatnonzero(np.isin(bunch.target, kept)))
    smaller.target = np.searchsorted(kept, smaller.target)
    smaller.target_names = [bunch.target_names[label] for label in kept]
    return smaller


def _reordered(bunch: Bunch, order: NDArray[np.int64]) -> Bunch:
    arrays = {key: bunch[key][order] for key in ("target", "ids", "filenames", "split")}
    return Bunch(**{**bunch, **arrays, "data": [bunch.data[i] for i in order]})


def _stripped(texts: list[str], parts: tuple[str, ...]) -> list[str]:
    for part in PARTS:  # the order in which scikit-learn does it
        if part in parts:
            texts = [_WITHOUT[part](text) for text in texts]
    return texts


def without_headers(text: str) -> str:
    """What follows the first empty line, nothing if there is none."""
    return text.partition("\n\n")[2]


def without_footer(text: str) -> str:
    """The text up to the last line of hyphens or spaces, behind which a signature may stand; all if there is none."""
    lines = text.strip().split("\n")
    rules = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: rules[-1]]) if rules and rules[-1] > 0 else text


def without_quotes(text: str) -> str:
    """The lines that neither quote nor say whom the next lines quote."""
    return "\n".join(line for line in text.split("\n") if not _QUOTING.search(line))


_QUOTING = re.compile(r"^[>|]|^(?:In article|Quoted from)|writes in|(?:writes|wrote|says|said):")
_WITHOUT = {"headers": without_headers, "footers": without_footer, "quotes": without_quotes}


def _fetched(subset: str, data_home: PathLike | None, download: bool) -> Bunch:
    from sklearn.datasets import fetch_20newsgroups as fetch

    try:
        bunch = fetch(subset=subset, data_home=data_home, download_if_missing=download, shuffle=False)
    except OSError as error:
        reason = f"scikit-learn could not download it either ({error})." if download else "Downloading was not allowed."
        raise DataNotFoundError(f"{missing(SOURCE, data_home)}\n{reason}") from error
    paths = [PurePath(name) for name in bunch.filenames]
    bunch.ids = np.array(["/".join(path.parts[-2:]) for path in paths])
    bunch.split = np.array(["train" if "train" in path.parts[-3] else "test" for path in paths])
    return bunch
