"""Data sets for semi-supervised learning, with ten published splits into labelled and unlabelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import Bunch

from cvxstructreg.datasets.locating import PathLike, Source, locate
from cvxstructreg.datasets.reading import DataFormatError, check_length, read_npz

_SPLITS = "y, labeled_idx and unlabeled_idx (one row per split, counted from 0)"
_ORIGIN = "http://olivier.chapelle.cc/lds/, the data of Chapelle & Zien (2005), Low density separation"
G50C = Source("g50c", "ssl_matrices/g50c.npz", f"an .npz file with X (550 x 50), {_SPLITS}", _ORIGIN)
MAC_WINDOWS = Source(
    title="mac-windows",
    path="ssl_matrices/mac_windows.npz",
    content=f"an .npz file with X_data, X_indices, X_indptr, X_shape (CSR, 1946 x 7511), {_SPLITS}",
    origin=_ORIGIN,
)
USPST = Source("USPST", "ssl_matrices/uspst.npz", f"an .npz file with X (2007 x 256), {_SPLITS}", _ORIGIN)

_TABLE = {"y": ("iu", 1), "labeled_idx": ("iu", 2), "unlabeled_idx": ("iu", 2)}
_PARTS = {"X_data": ("fiu", 1), "X_indices": ("iu", 1), "X_indptr": ("iu", 1), "X_shape": ("iu", 1)}


def load_g50c(*, data_home: PathLike | None = None) -> Bunch:
    """Load g50c: 550 points of two Gaussians in 50 dimensions whose Bayes error is 5 %, labels -1 and +1.

    Parameters
    ----------
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data, target, target_names, labeled_idx and unlabeled_idx (row s is split s of the ten published splits), DESCR.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> parts = {"X": np.eye(4), "y": np.array([-1, 1, 1, -1])}
    >>> splits = {"labeled_idx": np.array([[0, 1]]), "unlabeled_idx": np.array([[2, 3]])}
    >>> with tempfile.TemporaryDirectory() as home:
    ...     (pathlib.Path(home) / "ssl_matrices").mkdir()
    ...     np.savez(f"{home}/ssl_matrices/g50c.npz", **parts, **splits)
    ...     bunch = load_g50c(data_home=home)
    >>> bunch.target[bunch.labeled_idx[0]]
    array([-1,  1])
    """
    return _loaded(G50C, data_home, "550 points of two Gaussians in 50 dimensions; the Bayes error is 5 %.")


def load_mac_windows(*, data_home: PathLike | None = None) -> Bunch:
    """Load mac-windows: 1946 newsgroup posts on Macintosh or Windows as sparse unit rows over 7511 unnamed words.

    Parameters and result are as in `load_g50c`; data is a `scipy.sparse.csr_array`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> csr = {"X_data": np.ones(2), "X_indices": np.array([0, 2]), "X_indptr": np.array([0, 1, 2])}
    >>> splits = {"labeled_idx": np.array([[0]]), "unlabeled_idx": np.array([[1]])}
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = pathlib.Path(home) / "ssl_matrices" / "mac_windows.npz"
    ...     path.parent.mkdir()
    ...     np.savez(path, **csr, X_shape=np.array([2, 3]), y=np.array([-1, 1]), **splits)
    ...     load_mac_windows(data_home=home).data.shape
    (2, 3)
    """
    return _loaded(MAC_WINDOWS, data_home, "1946 posts to newsgroups on Macintosh or Windows, 7511 words, unit rows.")


def load_uspst(*, data_home: PathLike | None = None) -> Bunch:
    """Load USPST: 2007 handwritten digits of 16 x 16 pixels, ten classes, ten splits with 50 labelled digits.

    This is the set that papers on semi-supervised learning use. It is not the standard USPS test set, which also has
    2007 rows. Parameters and result are as in `load_g50c`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> splits = {"labeled_idx": np.array([[0, 2]]), "unlabeled_idx": np.array([[1]])}
    >>> with tempfile.TemporaryDirectory() as home:
    ...     (pathlib.Path(home) / "ssl_matrices").mkdir()
    ...     np.savez(f"{home}/ssl_matrices/uspst.npz", X=np.eye(3), y=np.array([7, 8, 7]), **splits)
    ...     load_uspst(data_home=home).target_names
    ['7', '8']
    """
    return _loaded(
        USPST, data_home, "2007 handwritten digits of 16 x 16 pixels, as used in papers on semi-supervised learning."
    )


def _loaded(source: Source, data_home: PathLike | None, words: str) -> Bunch:
    path = locate(source, data_home)
    is_sparse = source is MAC_WINDOWS
    arrays = read_npz(path, {**_TABLE, **(_PARTS if is_sparse else {"X": ("fiu", 2)})})
    X = _csr(path, arrays) if is_sparse else arrays["X"].astype(np.float64)
    y = arrays["y"].astype(np.int64)
    check_length(path, "y", len(y), X.shape[0], "rows of X")
    labeled, unlabeled = (arrays[name].astype(np.int64) for name in ("labeled_idx", "unlabeled_idx"))
    _check_splits(path, labeled, unlabeled, len(y))
    return Bunch(
        data=X,
        target=y,
        target_names=[str(label) for label in np.unique(y)],
        labeled_idx=labeled,
        unlabeled_idx=unlabeled,
        DESCR=f"{source.title}.\n\n{words}\nRow s of labeled_idx and unlabeled_idx is split s.\n",
    )


def _csr(path: Path, arrays: dict[str, NDArray[Any]]) -> sparse.csr_array:
    shape = tuple(int(count) for count in arrays["X_shape"])
    parts = tuple(arrays[name] for name in ("X_data", "X_indices", "X_indptr"))
    try:
        X = sparse.csr_array((parts[0].astype(np.float64), *parts[1:]), shape=shape)
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataFormatError(
            f"{path}: X_data, X_indices, X_indptr and X_shape are not a CSR matrix ({error}); get the file again"
        ) from error
    return X


def _check_splits(path: Path, labeled: NDArray[np.int64], unlabeled: NDArray[np.int64], n: int) -> None:
    if len(labeled) != len(unlabeled):
        raise DataFormatError(f"{path}: labeled_idx has {len(labeled)} splits, but unlabeled_idx has {len(unlabeled)}")
    for number, rows in enumerate(np.hstack([labeled, unlabeled])):
        if rows.size == 0 or rows.min() < 0 or rows.max() >= n or len(np.unique(rows)) < len(rows):
            raise DataFormatError(
                f"{path}: split {number} must have distinct rows from 0 to {n - 1}, each labelled or unlabelled"
            )
