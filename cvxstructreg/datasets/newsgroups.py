"""20 Newsgroups, from a folder or the network, in the order of scikit-learn's fetcher; pickles are never read."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from cvxstructreg.datasets.locating import (
    DataNotFoundError,
    PathLike,
    Source,
    cache_folder,
    data_folders,
    find_file,
    not_found_error,
)
from cvxstructreg.datasets.newsgroups_archive import URL, archived_posts, downloaded_posts
from cvxstructreg.datasets.reading import DataFormatError, Record, read_json_lines
from cvxstructreg.datasets.storing import check_checksum, json_lines, write_with_checksum

SOURCE = Source(
    title="20 Newsgroups",
    path="20newsgroups/20news_bydate.jsonl.gz",
    content=(
        "one JSON object per line with id (newsgroup/number), split (train or test), label (newsgroup) and text (the "
        "raw post with its headers), made from the archive 20news-bydate"
    ),
    origin="http://qwone.com/~jason/20Newsgroups/; with a network connection it is downloaded automatically",
    others=("20newsgroups/20news-bydate.tar.gz",),
)
#: The cache of scikit-learn's fetcher is a pickle: reading it could run any code, so it is ignored.
PICKLE = "20news-bydate_py3.pkz"
_FIELDS = {"id": str, "split": str, "label": str, "text": str}

#: Pairs of newsgroups used in papers, by short names.
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

18,846 posts from 1993 to twenty newsgroups: 11,314 for training and 7,532 later ones for testing. Order and labels are
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
    """Load 20 Newsgroups from the data folder, or from the network if it is not there.

    Documents have the order and the labels of scikit-learn's fetcher. A download is checked against its known checksum
    and stored as JSON lines in `data_home` or the cache folder. scikit-learn's own cache is not read, because it is a
    pickle, which can run any code.

    Parameters
    ----------
    subset : {"train", "test", "all"}
    categories : str or list of str, optional
        Newsgroups, or the short name of a pair in `NEWSGROUP_PAIRS`: science, sports, religion, computer, windows.
    remove : subset of ("headers", "footers", "quotes")
        Parts of the posts to remove, as in scikit-learn.
    shuffle, random_state
        As in scikit-learn. Without shuffling the order is scikit-learn's unshuffled order, which is not sorted by
        newsgroup either.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.
    download_if_missing : bool
        Whether to download the data (14 MB) if they are in no folder.
    verbose : bool
        Whether to print progress while reading.

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
    path = find_file(SOURCE, data_home)
    if path is None:
        bunch = _in_fetched_order(_fetched(data_home, download_if_missing, verbose), subset, URL)
    else:
        bunch = _in_fetched_order(_stored(path, verbose), subset, path)
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
            raise ValueError(f"remove contains {part!r}; choose from {', '.join(PARTS)}")
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


def _in_fetched_order(records: list[Record], subset: str, path: Path | str) -> Bunch:
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
    for part in PARTS:  # in scikit-learn's order
        if part in parts:
            texts = [_WITHOUT[part](text) for text in texts]
    return texts


def without_headers(text: str) -> str:
    """Return the text after the first empty line; nothing if there is none."""
    return text.partition("\n\n")[2]


def without_footer(text: str) -> str:
    """Return the text up to the last line of hyphens or spaces (a signature may follow); all if there is none."""
    lines = text.strip().split("\n")
    rules = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: rules[-1]]) if rules and rules[-1] > 0 else text


def without_quotes(text: str) -> str:
    """Return the text without quoted lines and without the lines that introduce a quote."""
    return "\n".join(line for line in text.split("\n") if not _QUOTING.search(line))


_QUOTING = re.compile(r"^[>|]|^(?:In article|Quoted from)|writes in|(?:writes|wrote|says|said):")
_WITHOUT = {"headers": without_headers, "footers": without_footer, "quotes": without_quotes}


def _stored(path: Path, verbose: bool) -> list[Record]:
    check_checksum(path)
    if ".tar" in path.suffixes:
        return archived_posts(path.read_bytes(), path)
    return read_json_lines(path, _FIELDS, verbose)


def _fetched(data_home: PathLike | None, download: bool, verbose: bool) -> list[Record]:
    """Download the posts and store them."""
    if not download:
        raise _missing(data_home, "It was not downloaded, because download_if_missing is False.")
    try:
        records = downloaded_posts(verbose)
    except OSError as error:
        raise _missing(data_home, f"It could not be downloaded either ({error}).") from error
    target = (cache_folder() if data_home is None else Path(data_home).expanduser()) / SOURCE.path
    try:
        write_with_checksum(target, json_lines(records, compressed=True))
    except OSError as error:
        warnings.warn(
            f"{SOURCE.title} could not be stored ({error}); it will be downloaded again next time", stacklevel=3
        )
    return records


def _missing(data_home: PathLike | None, reason: str) -> DataNotFoundError:
    pickles = [folder / PICKLE for folder in data_folders(data_home) if (folder / PICKLE).exists()]
    unread = f"\n{pickles[0]} is not read: it is a pickle, which can run any code." if pickles else ""
    return DataNotFoundError(f"{not_found_error(SOURCE, data_home)}\n{reason}{unread}")
