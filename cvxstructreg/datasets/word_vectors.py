"""Word vectors, from an .npz file or from the text format of GloVe and word2vec, restricted to a vocabulary."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import Bunch

from cvxstructreg.datasets.locating import DataNotFoundError, PathLike, Source, locate
from cvxstructreg.datasets.reading import DataFormatError, check_length, raw_lines, read_npz

SOURCE = Source(
    title="word vectors (GloVe 6B, 100 dimensions)",
    path="word_vectors/glove6b_100d_subset.npz",
    content='an .npz file with vectors (words x dimensions) and words (strings, or one string with "\\n" between them)',
    origin="https://nlp.stanford.edu/projects/glove/ (glove.6B.zip); or pass path= of any file of word vectors",
    others=("word_vectors/glove.6B.100d.txt.gz",),
)
_DESCR = "Word vectors read from {name}: {count} words, {dimension} dimensions.\n"


def load_word_vectors(
    vocabulary: Iterable[str] | Mapping[str, int] | None = None,
    *,
    path: PathLike | None = None,
    data_home: PathLike | None = None,
    dtype: DTypeLike = np.float64,
    verbose: bool = False,
) -> Bunch:
    """Load word vectors; if a vocabulary is given, only those of its words.

    Formats: an .npz file with `vectors` and `words`, or text with one word and its numbers per line, gzipped or not,
    with (word2vec) or without (GloVe) a first line of counts. A text file is read line by line, and only the words of
    the vocabulary are kept.

    Parameters
    ----------
    vocabulary : words, or mapping of word to column; optional
        Such as ``vectorizer.vocabulary_`` or ``vectorizer.get_feature_names_out()``. Vectors have its order.
    path : path, optional
        The file; by default the GloVe vectors in the data folder.
    data_home : path, optional
        The only folder to look in; by default ``$CVXSTRUCTREG_DATA``, then the cache folder.
    dtype : floating-point type of the result
    verbose : bool
        Whether to print progress while reading.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        data (one row per word), words, columns (position in the vocabulary of each row), missing (words of the
        vocabulary without a vector), DESCR; also rank and df if the file contains them.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as home:
    ...     path = pathlib.Path(home) / "vectors.txt"
    ...     _ = path.write_text("the 0.1 0.2\\ncat 1 2\\ndog 1 3\\n")
    ...     bunch = load_word_vectors(["dog", "unicorn", "cat"], path=path)
    >>> bunch.words, bunch.columns, bunch.missing
    (['dog', 'cat'], array([0, 2]), ['unicorn'])
    >>> bunch.data
    array([[1., 3.],
           [1., 2.]])
    """
    wanted = None if vocabulary is None else _wanted(vocabulary)
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise TypeError(f"dtype must be a floating-point type, not {kind}")
    file = _given(path) if path is not None else locate(SOURCE, data_home)
    if file.suffix == ".npz" or zipfile.is_zipfile(file):
        words, vectors, extra = _from_npz(file, wanted)
    else:
        words, vectors, extra = _from_text(file, wanted, kind, verbose)
    return _bunch(file, words, vectors.astype(kind), extra, wanted)


def _given(path: PathLike) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataNotFoundError(f"path is {str(file)!r}, which is not a file; give the file of the word vectors")
    return file


def _wanted(vocabulary: Iterable[str] | Mapping[str, int]) -> dict[str, int]:
    """Return the words with their positions."""
    if isinstance(vocabulary, str):
        raise TypeError(f"vocabulary must be a collection of words, not the single string {vocabulary!r}")
    if isinstance(vocabulary, Mapping):
        columns = np.array(list(vocabulary.values()))
        if len(columns) and (columns.dtype.kind not in "iu" or len(np.unique(columns)) < len(columns)):
            raise ValueError(
                "vocabulary is a mapping; its values must be distinct columns, as in vectorizer.vocabulary_"
            )
        ordered = sorted(vocabulary, key=lambda word: vocabulary[word])
        positions = {str(word): int(vocabulary[word]) for word in ordered}
    else:
        words = [str(word) for word in vocabulary]
        positions = {word: column for column, word in enumerate(words)}
        if len(positions) < len(words):
            raise ValueError("vocabulary contains a word twice; give each word once")
    if not positions:
        raise ValueError("vocabulary is empty; give words, or None for all vectors")
    return positions


Extra = dict[str, NDArray[Any]]


def _from_npz(path: Path, wanted: dict[str, int] | None) -> tuple[list[str], NDArray[Any], Extra]:
    arrays = read_npz(path, {"vectors": ("fiu", 2), "words": ("U", -1)})
    stored = arrays["words"]
    words = str(stored).split("\n") if stored.ndim == 0 else stored.ravel().tolist()
    check_length(path, "words", len(words), len(arrays["vectors"]), "rows of vectors")
    extra = {name: arrays[name] for name in ("rank", "df") if name in arrays}
    for name, array in extra.items():
        check_length(path, name, len(array), len(words), "words")
    first: dict[str, int] = {}
    for row, word in enumerate(words):
        if wanted is None or word in wanted:
            first.setdefault(word, row)
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    return list(first), arrays["vectors"][rows], {name: array[rows] for name, array in extra.items()}


def _from_text(
    path: Path, wanted: dict[str, int] | None, dtype: np.dtype[Any], verbose: bool
) -> tuple[list[str], NDArray[Any], Extra]:
    dimension = count = None
    rows: dict[str, NDArray[Any]] = {}
    encoded = None if wanted is None else {word.encode("utf-8") for word in wanted}
    number = 0
    for number, line in enumerate(raw_lines(path, verbose), 1):
        if dimension is None:
            dimension, count = _dimension(path, line)
            if count is not None:
                continue
        if line.endswith(b" "):  # as in files written by word2vec
            line = line.rstrip(b" ")
        spaces = line.count(b" ")
        if spaces < dimension:
            raise _bad_line(path, number, dimension, f"it has {spaces}")
        # a word may contain spaces; numbers of words outside the vocabulary are not parsed
        name = line[: line.index(b" ")] if spaces == dimension else line.rsplit(b" ", dimension)[0]
        if encoded is None or name in encoded:
            word, vector = _parsed(path, number, line.rsplit(b" ", dimension), dtype)
            rows.setdefault(word, vector)
            if encoded is not None and len(rows) == len(encoded):
                count = None  # all words are found: skip the rest of the file
                break
    if count is not None and number - 1 != count:
        raise DataFormatError(f"{path} has {number - 1} vectors, but its first line says {count}; get the file again")
    vectors = np.array(list(rows.values()), dtype=dtype).reshape(len(rows), dimension or 0)
    return list(rows), vectors, {}


def _dimension(path: Path, line: bytes) -> tuple[int, int | None]:
    """Return the dimension and, if the first line is a word2vec header, the number of words."""
    cells = line.split()
    if len(cells) == 2 and all(cell.isdigit() for cell in cells):
        return int(cells[1]), int(cells[0])
    if len(cells) < 2:
        raise DataFormatError(f"{path}, line 1: expected a word and its vector, not {line[:40]!r}")
    numbers = 0
    for cell in reversed(cells[1:]):
        try:
            float(cell)
        except ValueError:
            break
        numbers += 1
    if numbers == 0:
        raise _bad_line(path, 1, 1, "it has 0")
    return numbers, None


def _parsed(path: Path, number: int, cells: list[bytes], dtype: np.dtype[Any]) -> tuple[str, NDArray[Any]]:
    try:
        vector = np.array([float(cell) for cell in cells[1:]], dtype=dtype)
        word = cells[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataFormatError(f"{path}, line {number}: not UTF-8 text ({error}); is it the text format?") from error
    except ValueError as error:
        raise _bad_line(path, number, len(cells) - 1, str(error)) from error
    if not np.isfinite(vector).all():
        raise _bad_line(path, number, len(cells) - 1, "some are NaN or infinite")
    return word, vector


def _bad_line(path: Path, number: int, dimension: int, problem: str) -> DataFormatError:
    return DataFormatError(
        f"{path}, line {number}: expected a word and {dimension} numbers, separated by spaces ({problem}); "
        "if this is word2vec's binary format, convert it to text first, otherwise get the file again"
    )


def _bunch(path: Path, words: list[str], vectors: NDArray[Any], extra: Extra, wanted: dict[str, int] | None) -> Bunch:
    if wanted is None:
        columns, absent = np.arange(len(words)), []
    else:
        row = {word: number for number, word in enumerate(words)}
        absent = [word for word in wanted if word not in row]
        words = [word for word in wanted if word in row]
        chosen = np.array([row[word] for word in words], dtype=np.int64)
        vectors, extra = vectors[chosen], {name: array[chosen] for name, array in extra.items()}
        columns = np.array([wanted[word] for word in words], dtype=np.int64)
    description = _DESCR.format(name=path.name, count=len(words), dimension=vectors.shape[1])
    return Bunch(data=vectors, words=words, columns=columns, missing=absent, DESCR=description, **extra)
