"""A sparse matrix that knows its words and their structure."""

from __future__ import annotations

from typing import Any, ClassVar

from scipy import sparse


class WordMatrix(sparse.csr_array):  # type: ignore[misc, unused-ignore]
    """A sparse matrix of documents by words, with the names of its columns and the groups or graph of its words.

    The estimators of this library read both from X. Slices and products are ordinary sparse matrices in this respect:
    they know neither.

    Attributes
    ----------
    column_names : tuple of str, or None
    structure : Groups, Graph, or None

    Examples
    --------
    >>> X = WordMatrix.of([[1.0, 0.0]], ("moon", "salt"))
    >>> X.column_names, X.structure is None
    (('moon', 'salt'), True)
    """

    column_names: ClassVar[Any] = None
    structure: ClassVar[Any] = None

    @classmethod
    def of(cls, matrix: Any, column_names: tuple[str, ...], structure: Any = None) -> WordMatrix:
        """Return the matrix with names and structure."""
        result = cls(matrix)
        result.__dict__ |= {"column_names": tuple(column_names), "structure": structure}
        return result
