"""A small file of every data set, for the tests of loaders."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from cvxstructreg import datasets
from cvxstructreg.datasets import write_json_lines

NEWS = "20newsgroups/20news_bydate.jsonl.gz"
MOVIES = "movie_reviews/movie_polarity_v2.jsonl.gz"
AMAZON = "amazon/amazon_reviews.jsonl.gz"
GLOVE = "word_vectors/glove6b_100d_subset.npz"
LOADERS = {
    NEWS: lambda home: datasets.fetch_20newsgroups(data_home=home, download_if_missing=False),
    MOVIES: lambda home: datasets.load_movie_reviews(data_home=home),
    AMAZON: lambda home: datasets.load_multi_domain_reviews(data_home=home),
    "ssl_matrices/g50c.npz": lambda home: datasets.load_g50c(data_home=home),
    "ssl_matrices/mac_windows.npz": lambda home: datasets.load_mac_windows(data_home=home),
    "ssl_matrices/uspst.npz": lambda home: datasets.load_uspst(data_home=home),
    "gene_expression/diabetes.npz": lambda home: datasets.load_diabetes_expression(data_home=home),
    "lexicons/stopwords_english_nltk.txt": lambda home: datasets.load_stopwords(data_home=home),
    "lexicons/opinion_lexicon_positive.txt.gz": lambda home: datasets.load_opinion_words(data_home=home),
    "lexicons/sentiwordnet30.tsv.gz": lambda home: datasets.load_sentiwordnet(data_home=home),
    "lexicons/wordnet30_synsets.tsv.gz": lambda home: datasets.load_wordnet(data_home=home),
    GLOVE: lambda home: datasets.load_word_vectors(data_home=home),
}
SPLITS = {"labeled_idx": np.array([[0, 1], [2, 3]]), "unlabeled_idx": np.array([[2, 3], [0, 1]])}
X = np.arange(8.0).reshape(4, 2)
CSR = sparse.csr_array(X)
MATRIX = {"X": X, "y": np.array([-1, 1, 1, -1], dtype=np.int8), **SPLITS}
PARTS = {"X_data": CSR.data, "X_indices": CSR.indices, "X_indptr": CSR.indptr, "X_shape": np.array(CSR.shape)}
EXPRESSION = {
    "X": X,
    "y": np.array([0, 0, 1, 1], dtype=np.int8),
    "class_names": np.array(["NGT", "DMT"]),
    "genes": np.array(["INS", "A /// B"]),
    "samples": np.array(["s1", "s2", "s3", "s4"]),
}
VECTORS = {
    "vectors": np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float16),
    "words": np.array("the\ncat\ndog"),
    "rank": np.arange(3),
}


def post(number: int, label: str, split: str, text: str = "") -> dict[str, object]:
    return {"id": f"{label}/{number}", "label": label, "split": split, "text": text or f"text {number}"}


def review(number: int, domain: str, label: str, text: str) -> dict[str, object]:
    return {
        "id": str(number),
        "domain": domain,
        "label": label,
        "rating": 4.0 + number % 2,
        "title": f"title {number}",
        "text": text,
    }


def write(path: Path, content: str | bytes) -> Path:
    """Write the content, compressed if the name ends in .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(stored) if path.suffix == ".gz" else stored)
    return path


def write_npz(path: Path, **arrays: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return path


def hide_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the data of this machine."""
    monkeypatch.delenv("CVXSTRUCTREG_DATA", raising=False)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nowhere"))


def folder_with_every_set(tmp_path: Path) -> Path:
    """A folder with a small file of every set."""
    folder = tmp_path / "data"
    groups = ["alt.atheism", "sci.med", "sci.space"]
    posts = [post(n, groups[n % 3], split) for n in range(30) for split in (["train"] if n < 20 else ["test"])]
    write_json_lines(folder / NEWS, posts)
    films = [("neg", 0, "dull . \n\nlong . \n"), ("pos", 0, "fine . "), ("pos", 1, "fun .")]
    write_json_lines(
        folder / MOVIES,
        [{"id": f"{label}/{i}", "label": label, "fold": fold, "text": t} for i, (label, fold, t) in enumerate(films)],
    )
    texts = [("kitchen", "positive", "Good  pan"), ("kitchen", "negative", "bad"), ("books", "positive", "good pan")]
    write_json_lines(folder / AMAZON, [review(i, *text) for i, text in enumerate(texts)])
    write_npz(folder / "ssl_matrices/g50c.npz", **MATRIX)
    write_npz(folder / "ssl_matrices/uspst.npz", **{**MATRIX, "y": np.array([3, 5, 7, 3])})
    write_npz(folder / "ssl_matrices/mac_windows.npz", **PARTS, y=MATRIX["y"], **SPLITS)
    write_npz(folder / "gene_expression/diabetes.npz", **EXPRESSION)
    write(folder / "gene_expression/c2.curated.old.gmt.gz", "s\tall of it\tINS\tB\tINS\nt\tnothing\tZ\n")
    write(folder / "gene_expression/c2.cp.kegg.v7.5.1.symbols.gmt.gz", "kegg\turl\tA\n")
    write(folder / "lexicons/stopwords_english_nltk.txt", "i\nme\n\nme\n")
    write(folder / "lexicons/opinion_lexicon_positive.txt.gz", "a+\ngood\n")
    write(folder / "lexicons/opinion_lexicon_negative.txt.gz", "; comment\nnaïve\n")
    write(
        folder / "lexicons/sentiwordnet30.tsv.gz",
        "pos\tsynset\tpos_score\tneg_score\tlemmas(lemma#sense)\n"
        "a\t01\t0.75\t0\tgood#1\nn\t02\t0.25\t0.5\tgood#2 Nice#1\na\t03\t0\t1\tbad#1\n",
    )
    write(
        folder / "lexicons/wordnet30_synsets.tsv.gz",
        "pos\tsynset\tlemmas(lemma#sense)\na\t01\tgood#1 fine#2 nice#1\na\t02\tbad#1\na\t03\tawful#1 bad#2\n",
    )
    write(
        folder / "lexicons/wordnet30_antonyms.tsv.gz",
        "pos\tlemma\tantonym\tsynset\tantonym_synset\na\tgood\tbad\t01\t02\na\tbad\tgood\t02\t01\n",
    )
    write(
        folder / "lexicons/wordnet30_relations.tsv.gz",
        "pos\tsynset\trelation\tpos2\tsynset2\na\t02\tsimilar_to\ta\t03\na\t01\talso_see\ta\t03\n",
    )
    write_npz(folder / GLOVE, **VECTORS)
    return folder
