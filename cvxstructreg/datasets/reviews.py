"""Reviews labelled by sentiment: films in ten folds, and products of several domains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from cvxstructreg.datasets.locating import PathLike, Source, locate
from cvxstructreg.datasets.reading import DataFormatError, Record, read_json_lines, text_lines

MOVIES = Source(
    title="movie reviews (Pang & Lee 2004, polarity 2.0)",
    path="movie_reviews/movie_polarity_v2.jsonl.gz",
    content="one JSON object per line with id, label (neg or pos), fold (0 to 9) and text (one sentence per line)",
    origin="https://www.cs.cornell.edu/people/pabo/movie-review-data/ (review_polarity.tar.gz)",
    others=("movie_reviews/txt_sentoken", "movie_reviews/review_polarity/txt_sentoken"),
)
DOMAINS = Source(
    title="multi-domain sentiment (Blitzer et al. 2007)",
    path="amazon/amazon_reviews.jsonl.gz",
    content="one JSON object per line with id, domain, label (negative or positive), rating, title and text",
    origin="https://www.cs.jhu.edu/~mdredze/datasets/sentiment/ (unprocessed.tar.gz)",
)
_MOVIES_DESCR = """Movie reviews, polarity 2.0 (Pang and Lee 2004).

1000 negative and 1000 positive film reviews in English, tokenised and in lower case, one sentence per line. The ten
folds are those of the publishers: reviews 0 to 99 of each label are fold 0, and so on.
"""
_DOMAINS_DESCR = """Multi-domain sentiment (Blitzer, Dredze and Pereira 2007).

Product reviews with one to five stars, 1000 negative (one or two stars) and 1000 positive ones in each domain. One or
two percent of the texts occur more than once. Equal texts have the same number in `groups`, so that splits can keep
them together, as with sklearn.model_selection.GroupKFold or StratifiedGroupKFold.
"""


def load_movie_reviews(
    folds: int | Iterable[int] | None = None, *, data_home: PathLike | None = None, verbose: bool = False
) -> Bunch:
    """Load the movie reviews with their ten published folds.

    Parameters
    ----------
    folds : int or sequence of int, optional
        Keep only these folds, 0 to 9.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.
    verbose : bool
        Whether to print progress while reading.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (list of str), sentences (list of list of str), target (0 negative, 1 positive), target_names, fold, ids
        and DESCR. ``sklearn.model_selection.PredefinedSplit(bunch.fold)`` gives the ten-fold cross-validation.

    Examples
    --------
    >>> import tempfile
    >>> from cvxstructreg.datasets import write_json_lines
    >>> texts = [("neg", "dull .\\nand long ."), ("pos", "a joy .")]
    >>> records = [{"id": f"{label}/0", "label": label, "fold": 0, "text": text} for label, text in texts]
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_json_lines(f"{home}/movie_reviews/movie_polarity_v2.jsonl.gz", records)
    ...     bunch = load_movie_reviews(data_home=home)
    >>> bunch.target, bunch.sentences[0]
    (array([0, 1]), ['dull .', 'and long .'])
    """
    path = locate(MOVIES, data_home)
    if path.is_dir():
        records = _published_movies(path)
    else:
        records = read_json_lines(path, {"id": str, "label": str, "fold": int, "text": str}, verbose)
    fold = np.array([record["fold"] for record in records], dtype=np.int64)
    kept = np.flatnonzero(_fold_mask(fold, folds))
    records = [records[i] for i in kept]
    return Bunch(
        data=[record["text"] for record in records],
        sentences=[[line.strip() for line in record["text"].splitlines() if line.strip()] for record in records],
        target=_labels(records, ["neg", "pos"], path),
        target_names=["neg", "pos"],
        fold=fold[kept],
        ids=np.array([record["id"] for record in records]),
        DESCR=_MOVIES_DESCR,
    )


def load_multi_domain_reviews(
    domain: str | Iterable[str] | None = None, *, data_home: PathLike | None = None, verbose: bool = False
) -> Bunch:
    """Load product reviews of one or more domains, with a number for each distinct text.

    Parameters
    ----------
    domain : str or sequence of str, optional
        Domains such as "electronics" or "kitchen"; all by default.
    data_home, verbose
        As in `load_movie_reviews`.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (list of str), target (0 negative, 1 positive), target_names, groups (equal for texts that are equal up
        to case and white space), n_repeated (number of documents with an earlier copy), domain, rating, titles, ids,
        DESCR.

    Examples
    --------
    >>> import tempfile
    >>> from cvxstructreg.datasets import write_json_lines
    >>> record = {"domain": "kitchen", "label": "positive", "rating": 5.0, "title": "Good"}
    >>> records = [{**record, "id": str(i), "text": text} for i, text in enumerate(["Sharp.", "Light.", "sharp. "])]
    >>> with tempfile.TemporaryDirectory() as home:
    ...     write_json_lines(f"{home}/amazon/amazon_reviews.jsonl.gz", records)
    ...     bunch = load_multi_domain_reviews("kitchen", data_home=home)
    >>> bunch.groups, bunch.n_repeated
    (array([0, 1, 0]), 1)
    """
    path = locate(DOMAINS, data_home)
    fields = {"id": str, "domain": str, "label": str, "rating": float, "title": str, "text": str}
    records = _of_domains(read_json_lines(path, fields, verbose), domain)
    numbers: dict[str, int] = {}
    keys = [" ".join(record["text"].lower().split()) for record in records]
    groups = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    return Bunch(
        data=[record["text"] for record in records],
        target=_labels(records, ["negative", "positive"], path),
        target_names=["negative", "positive"],
        groups=groups,
        n_repeated=len(records) - len(numbers),
        domain=np.array([record["domain"] for record in records]),
        rating=np.array([record["rating"] for record in records]),
        titles=[record["title"] for record in records],
        ids=np.array([record["id"] for record in records]),
        DESCR=_DOMAINS_DESCR,
    )


def _labels(records: list[Record], names: list[str], path: Path) -> NDArray[np.int64]:
    unknown = [record for record in records if record["label"] not in names]
    if unknown:
        given = f"document {unknown[0]['id']} has the label {unknown[0]['label']!r}"
        raise DataFormatError(f"{path}: {given}; expected {' or '.join(names)}")
    return np.array([names.index(record["label"]) for record in records], dtype=np.int64)


def _fold_mask(fold: NDArray[np.int64], chosen: int | Iterable[int] | None) -> NDArray[np.bool_]:
    if chosen is None:
        return np.ones(len(fold), dtype=bool)
    wanted = np.atleast_1d(np.asarray(chosen if isinstance(chosen, int | np.integer) else list(chosen)))
    there = np.unique(fold)
    if wanted.size == 0 or wanted.dtype.kind not in "iu" or not np.isin(wanted, there).all():
        raise ValueError(f"folds must be among {there.tolist()}, not {chosen!r}")
    return np.isin(fold, wanted)


def _of_domains(records: list[Record], domain: str | Iterable[str] | None) -> list[Record]:
    if domain is None:
        return records
    wanted = [domain] if isinstance(domain, str) else list(domain)
    there = sorted({record["domain"] for record in records})
    unknown = [name for name in wanted if name not in there]
    if unknown or not wanted:
        raise ValueError(f"domain must be among {', '.join(there)}, not {unknown[0] if unknown else wanted!r}")
    return [record for record in records if record["domain"] in wanted]


def _published_movies(folder: Path) -> list[Record]:
    """Return the reviews of the publishers' folder, neg/cv000_29416.txt and so on."""
    records = []
    for path in sorted(folder.glob("*/cv*.txt")):
        match = re.match(r"cv(\d{3})_", path.name)
        if match is None:
            raise DataFormatError(
                f"{path} is not a review of the published folder; expected names such as cv000_29416.txt"
            )
        text = "".join(f"{line}\n" for _, line in text_lines(path, encoding="latin-1"))
        label = path.parent.name
        records.append({"id": f"{label}/{path.stem}", "label": label, "fold": int(match[1]) // 100, "text": text})
    if not records:
        raise DataFormatError(f"{folder} has no reviews; expected neg/cv000_29416.txt and so on")
    return records
