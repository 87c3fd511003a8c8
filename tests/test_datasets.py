"""Loaders: on small files of every format, whole and broken, and on the real data where it is."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError, DataNotFoundError, write_json_lines
from cvxstructreg.datasets.newsgroups import without_footer, without_headers, without_quotes
from cvxstructreg.datasets.storing import sha256
from cvxstructreg.graphs import pathway_graph, sentiment_scores
from cvxstructreg.graphs.builders import wordnet

BESIDE = Path(__file__).parent.parent.parent / "shared" / "data"
DATA = next((path for path in (Path(os.environ.get("CVXSTRUCTREG_DATA", BESIDE)), BESIDE) if path.is_dir()), None)

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


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees the data of this machine unless it says so."""
    monkeypatch.delenv("CVXSTRUCTREG_DATA", raising=False)
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "nowhere"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
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


# --- where files are looked for ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LOADERS)
def test_a_missing_set_says_what_to_put_where(tmp_path, path):
    with pytest.raises(DataNotFoundError) as caught:
        LOADERS[path](tmp_path)
    message = str(caught.value)
    assert str(tmp_path / path) in message
    assert "CVXSTRUCTREG_DATA" in message and "data_home" in message and "http" in message
    assert isinstance(caught.value, FileNotFoundError)


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(DataNotFoundError, match="is not a folder"):
        datasets.load_g50c(data_home=tmp_path / "typo")
    with pytest.raises(TypeError, match="data_home must be the path"):
        datasets.load_g50c(data_home=3)


def test_argument_then_variable_then_cache(home, tmp_path, monkeypatch):
    assert datasets.data_folders() == [datasets.cache_folder()]
    cached = datasets.cache_folder()
    assert str(cached).startswith(str(tmp_path))
    write(cached / "lexicons/stopwords_english_nltk.txt", "cached\n")
    assert datasets.load_stopwords().words == ["cached"]
    monkeypatch.setenv("CVXSTRUCTREG_DATA", str(home))
    assert datasets.load_stopwords().words == ["i", "me"]
    (home / "lexicons/stopwords_english_nltk.txt").unlink()
    assert datasets.load_stopwords().words == ["cached"]
    with pytest.raises(DataNotFoundError):
        datasets.load_stopwords(data_home=home)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [("linux", "XDG_CACHE_HOME", "c/cvxstructreg"), ("win32", "LOCALAPPDATA", "c/cvxstructreg")],
)
def test_cache_folders_of_platforms(monkeypatch, platform, variable, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, "c")
    assert datasets.cache_folder() == Path(expected)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert datasets.cache_folder().parts[-3:] == ("Library", "Caches", "cvxstructreg")


def test_files_may_be_uncompressed_and_outside_their_subfolder(tmp_path):
    write(tmp_path / "opinion_lexicon_positive.txt", "good\n")
    write(tmp_path / "lexicons/negative-words.txt", ";;;\n\nna\xefve\n".encode("latin-1"))
    words = datasets.load_opinion_words(data_home=tmp_path)
    assert (words.positive, words.negative) == (["good"], ["naïve"])


# --- 20 Newsgroups ----------------------------------------------------------------------------------------------------


def archive_of(posts: list[dict[str, object]]) -> bytes:
    """An archive like 20news-bydate.tar.gz, and things in it that are no posts."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for record in posts:
            member = tarfile.TarInfo(f"20news-bydate-{record['split']}/{record['id']}")
            content = str(record["text"]).encode("latin-1")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("20news-bydate-train/sci.med/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        for name in ("../../20news-bydate-train/sci.med/1", "20news-bydate-train/readme", "20news-bydate-train/a/b/c"):
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return stream.getvalue()


@pytest.fixture
def network(tmp_path, posts, monkeypatch) -> Path:
    """A file in place of the archive on the network."""
    file = write(tmp_path / "network" / "archive", archive_of(posts))
    monkeypatch.setattr("cvxstructreg.datasets.newsgroups_archive.URL", file.as_uri())
    monkeypatch.setattr("cvxstructreg.datasets.newsgroups_archive.CHECKSUM", sha256(file.read_bytes()))
    monkeypatch.setattr("cvxstructreg.datasets.newsgroups_archive.DELAY", 0.0)
    return file


def by_scikit_learn(folder: Path, posts: list[dict[str, object]], **options: object) -> Bunch:
    """What scikit-learn's fetcher makes of the posts: its cache is made here as the fetcher makes it."""
    import codecs
    import pickle

    from sklearn.datasets import fetch_20newsgroups, load_files

    cache = {}
    for split in ("train", "test"):
        top = folder / f"20news-bydate-{split}"
        for record in posts:
            if record["split"] == split:
                write(top / str(record["id"]), str(record["text"]).encode("latin-1"))
        cache[split] = load_files(top, encoding="latin1")
    (folder / "20news-bydate_py3.pkz").write_bytes(codecs.encode(pickle.dumps(cache), "zlib_codec"))
    return fetch_20newsgroups(data_home=folder, **options)


HEADER = "From: someone@somewhere\nSubject: post {n}\n\n"
BODY = "In article <1> x writes:\n> quoted {n}\nText {n} of the p\xf6st.\n-- \nSignature {n}\n"


@pytest.fixture(scope="module")
def posts() -> list[dict[str, object]]:
    labels = ["alt.atheism", "rec.autos", "sci.med", "sci.space"]
    text = [(HEADER + BODY).format(n=n) for n in range(80)]
    return [post(9990 + n, labels[n % 4], "train" if n < 50 else "test", text[n]) for n in range(80)]


@pytest.mark.parametrize(
    ("remove", "text", "left"),
    [
        (without_headers, "From: me\nSubject: x\n\nBody\n\nmore", "Body\n\nmore"),
        (without_headers, "no empty line\nanywhere", ""),
        (without_footer, "Body\n\nmore\n  --  \nMe\nmy house\n\n", "Body\n\nmore"),
        (without_footer, "Body\n\nthe last part may be a signature", "Body"),
        (without_footer, "one part\n- - -\nonly\n", "one part\n- - -\nonly\n"),
        (without_footer, "---\nnothing before it", "---\nnothing before it"),
        (without_footer, "", ""),
        (without_quotes, "In article <1> you write\n> old\n| older\n > new", " > new"),
        (without_quotes, "he wrote: x\nshe writes in sci.med\nQuoted from it\nsaid he\nwe said:", "said he"),
    ],
)
def test_parts_of_posts(remove, text, left):
    assert remove(text) == left


@pytest.mark.parametrize("subset", ["train", "test", "all"])
@pytest.mark.parametrize("categories", [None, ["sci.space", "alt.atheism"]])
@pytest.mark.parametrize(("shuffle", "remove"), [(True, ()), (False, ("quotes", "headers", "footers"))])
def test_order_and_labels_are_those_of_scikit_learn(tmp_path, posts, network, subset, categories, shuffle, remove):
    write_json_lines(tmp_path / "lines" / NEWS, posts[::-1])
    write(tmp_path / "archive" / "20newsgroups" / "20news-bydate.tar", gzip.decompress(network.read_bytes()))
    (tmp_path / "downloaded").mkdir()
    options = {"subset": subset, "categories": categories, "shuffle": shuffle, "remove": remove}
    expected = by_scikit_learn(tmp_path / "sk", posts, **options)
    for folder in ("lines", "archive", "downloaded", "downloaded"):
        bunch = datasets.fetch_20newsgroups(data_home=tmp_path / folder, **options)
        assert bunch.data == expected.data
        np.testing.assert_array_equal(bunch.target, expected.target)
        assert list(bunch.target_names) == list(expected.target_names)
        assert [i.split("/")[0] for i in bunch.ids] == [bunch.target_names[t] for t in bunch.target]
        assert set(bunch.split) == ({"train", "test"} if subset == "all" else {subset})
        assert len(bunch.filenames) == len(bunch.data)


def test_a_download_is_stored_once_with_its_checksum(tmp_path, network):
    first = datasets.fetch_20newsgroups()  # into the cache folder
    file = datasets.cache_folder() / NEWS
    assert sorted(path.name for path in file.parent.iterdir()) == [file.name, f"{file.name}.sha256"]
    assert file.with_name(f"{file.name}.sha256").read_text().split() == [sha256(file.read_bytes()), file.name]
    network.unlink()
    assert datasets.fetch_20newsgroups().data == first.data
    lines = gzip.decompress(file.read_bytes()).replace(b"Text", b"Lies")
    file.write_bytes(gzip.compress(lines))
    with pytest.raises(DataFormatError, match=r"not the one in 20news_bydate.jsonl.gz.sha256; get the file again"):
        datasets.fetch_20newsgroups()


def test_another_archive_than_the_known_one_is_refused(tmp_path, posts, network):
    network.write_bytes(archive_of(posts[1:]))
    with pytest.raises(DataFormatError, match=r"has the SHA-256 checksum .* damaged or was changed, and is not used"):
        datasets.fetch_20newsgroups(data_home=tmp_path)
    assert not (tmp_path / NEWS).exists()


def test_a_download_that_cannot_be_stored_is_used_all_the_same(tmp_path, posts, network):
    write(tmp_path / "home" / "20newsgroups", "a file where the folder should be")
    with pytest.warns(UserWarning, match="could not be stored"):
        bunch = datasets.fetch_20newsgroups("all", data_home=tmp_path / "home")
    assert len(bunch.data) == len(posts)


@pytest.mark.parametrize("content", [b"no archive", gzip.compress(b"nor this"), b""], ids=["text", "gzip", "empty"])
def test_broken_archives(tmp_path, content):
    (tmp_path / "20news-bydate.tar.gz").write_bytes(content)
    with pytest.raises(DataFormatError, match=r"20news-bydate.tar.gz is not a tar archive, or is damaged"):
        datasets.fetch_20newsgroups(data_home=tmp_path)


def test_archives_without_posts_and_truncated_ones(tmp_path, posts):
    file = tmp_path / "20news-bydate.tar.gz"
    file.write_bytes(archive_of([]))
    with pytest.raises(DataFormatError, match="has no posts named 20news-bydate-train"):
        datasets.fetch_20newsgroups(data_home=tmp_path)
    file.write_bytes(archive_of(posts)[:-200])
    with pytest.raises(DataFormatError, match="damaged"):
        datasets.fetch_20newsgroups(data_home=tmp_path)


def test_the_archive_is_the_one_scikit_learn_downloads():
    from sklearn.datasets._twenty_newsgroups import ARCHIVE

    from cvxstructreg.datasets.newsgroups_archive import CHECKSUM, URL

    assert (ARCHIVE.url, ARCHIVE.checksum) == (URL, CHECKSUM)


class Attack:
    """A pickle of this creates a file when it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


def test_no_pickle_in_a_cache_is_ever_read(tmp_path, home, network, monkeypatch):
    import codecs
    import pickle

    evidence, folder = tmp_path / "evidence", tmp_path / "pickles"
    stored = pickle.dumps(Attack(evidence))
    pickle.loads(stored)
    assert evidence.exists()  # the attack works
    evidence.unlink()
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(folder))
    for place in (folder, datasets.cache_folder()):
        for name in ("20news-bydate_py3.pkz", "20news-bydate.pkz", "20newsgroups/20news-bydate_py3.pkz"):
            write(place / name, codecs.encode(stored, "zlib_codec"))
    unread = r"(?s)download_if_missing is False.*20news-bydate_py3.pkz is not read: it is a pickle"
    for given in (folder, None):
        with pytest.raises(DataNotFoundError, match=unread):
            datasets.fetch_20newsgroups(data_home=given, download_if_missing=False)
        assert len(datasets.fetch_20newsgroups("all", data_home=given).data) == 80
    for name, loader in LOADERS.items():
        for content in (stored, gzip.compress(stored)):
            (home / name).write_bytes(content)
            with pytest.raises(DataFormatError):
                loader(home)
    assert not evidence.exists()


@pytest.mark.parametrize(
    "path", sorted(Path(datasets.__file__).parent.parent.rglob("*.py")), ids=lambda path: path.name
)
def test_nothing_in_the_package_can_unpickle(path):
    """Neither pickle and its kin, nor a fetcher of scikit-learn with a pickled cache."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert ast.unparse(node.value) == "False"
    unsafe = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib.load"}
    assert not names & unsafe
    assert not {name for name in names if name and name.startswith("sklearn.datasets.fetch_")}


def test_pairs_by_their_short_names(home):
    bunch = datasets.fetch_20newsgroups("all", "science", data_home=home)
    assert bunch.target_names == ["sci.med", "sci.space"] and len(bunch.data) == 20
    assert datasets.fetch_20newsgroups("all", "sci.med", data_home=home).target_names == ["sci.med"]
    assert datasets.NEWSGROUP_PAIRS["computer"] == ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware")


def test_seeds_of_the_order(home):
    orders = [datasets.fetch_20newsgroups(random_state=seed, data_home=home).ids.tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subset": "dev"}, 'must be "train", "test" or "all"'),
        ({"categories": "politics"}, "unknown newsgroup 'politics'; choose from alt.atheism, .*science"),
        ({"categories": []}, "must be newsgroups"),
        ({"remove": ("body",)}, "choose from headers, footers, quotes"),
    ],
)
def test_bad_choices_of_newsgroups(home, options, message):
    with pytest.raises(ValueError, match=message):
        datasets.fetch_20newsgroups(data_home=home, **options)


def test_without_network_the_remedy_is_named(tmp_path, network):
    network.unlink()
    with pytest.raises(DataNotFoundError, match=r"(?s)20news_bydate.jsonl.gz.*could not be downloaded either"):
        datasets.fetch_20newsgroups(data_home=tmp_path)
    with pytest.raises(DataNotFoundError, match="not downloaded, because download_if_missing is False"):
        datasets.fetch_20newsgroups(data_home=tmp_path, download_if_missing=False)


# --- reviews ----------------------------------------------------------------------------------------------------------


def test_movie_reviews(home):
    bunch = datasets.load_movie_reviews(data_home=home)
    assert bunch.target.tolist() == [0, 1, 1] and bunch.fold.tolist() == [0, 0, 1]
    assert bunch.sentences == [["dull .", "long ."], ["fine ."], ["fun ."]]
    assert datasets.load_movie_reviews(1, data_home=home).data == ["fun ."]
    assert len(datasets.load_movie_reviews([0, 1], data_home=home).data) == 3
    for folds in (7, [0, 7], [], [0.5]):
        with pytest.raises(ValueError, match=r"folds must be among \[0, 1\]"):
            datasets.load_movie_reviews(folds, data_home=home)


def test_movie_reviews_as_published(tmp_path):
    folder = tmp_path / "movie_reviews" / "txt_sentoken"
    write(folder / "neg" / "cv123_1.txt", "caf\xe9 .\nno .\n".encode("latin-1"))
    write(folder / "pos" / "cv999_2.txt", "yes .\r\nmore .\r\n")
    bunch = datasets.load_movie_reviews(data_home=tmp_path)
    assert bunch.ids.tolist() == ["neg/cv123_1", "pos/cv999_2"]
    assert bunch.data[1] == "yes .\nmore .\n"
    assert bunch.fold.tolist() == [1, 9] and bunch.sentences[0] == ["café .", "no ."]
    write(folder / "pos" / "cvx.txt", "x")
    with pytest.raises(DataFormatError, match=r"cvx\.txt is not a review"):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_an_empty_published_folder(tmp_path):
    (tmp_path / "movie_reviews" / "txt_sentoken").mkdir(parents=True)
    with pytest.raises(DataFormatError, match="has no reviews"):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_multi_domain_reviews(home):
    bunch = datasets.load_multi_domain_reviews(data_home=home)
    assert bunch.groups.tolist() == [0, 1, 0] and bunch.n_repeated == 1
    assert bunch.target.tolist() == [1, 0, 1] and bunch.rating.tolist() == [4.0, 5.0, 4.0]
    kitchen = datasets.load_multi_domain_reviews("kitchen", data_home=home)
    assert kitchen.titles == ["title 0", "title 1"] and set(kitchen.domain) == {"kitchen"}
    for domain in ("cars", ["kitchen", "cars"], []):
        with pytest.raises(ValueError, match="domain must be among books, kitchen"):
            datasets.load_multi_domain_reviews(domain, data_home=home)


def test_groups_keep_repeated_texts_together(home):
    from sklearn.model_selection import GroupKFold

    bunch = datasets.load_multi_domain_reviews(data_home=home)
    for train, test in GroupKFold(2).split(bunch.data, bunch.target, bunch.groups):
        assert not {" ".join(bunch.data[i].lower().split()) for i in train} & {bunch.data[i].lower() for i in test}


# --- matrices ---------------------------------------------------------------------------------------------------------


def test_semi_supervised_matrices(home):
    g50c, uspst = datasets.load_g50c(data_home=home), datasets.load_uspst(data_home=home)
    np.testing.assert_array_equal(g50c.data, X)
    np.testing.assert_array_equal(g50c.labeled_idx, SPLITS["labeled_idx"])
    assert g50c.target.dtype == np.int64 and g50c.target_names == ["-1", "1"]
    assert uspst.target_names == ["3", "5", "7"]
    windows = datasets.load_mac_windows(data_home=home)
    assert sparse.issparse(windows.data)
    np.testing.assert_array_equal(windows.data.toarray(), X)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": None}, "has no array X; it contains"),
        ({"y": None, "labeled_idx": None}, "has no array y, labeled_idx"),
        ({"X": X.ravel()}, r"shape \(8,\); expected numbers in 2 dimensions"),
        ({"X": X.astype(str)}, "expected numbers"),
        ({"X": np.where(X == 3, np.nan, X)}, "NaN or infinite"),
        ({"y": np.array([1, 1])}, "y has 2 entries, expected one for each of 4 rows of X"),
        ({"y": np.array([1.5, 1, 2, 3])}, "expected integers in 1 dimension$"),
        ({"labeled_idx": np.array([[0, 1]])}, "labeled_idx has 1 splits, but unlabeled_idx has 2"),
        ({"labeled_idx": np.array([[0, 9], [2, 3]])}, "split 0 must have distinct rows from 0 to 3"),
        ({"labeled_idx": np.array([[0, 1], [2, 0]])}, "split 1 must have distinct rows"),
    ],
)
def test_broken_matrices(tmp_path, changed, message):
    arrays = {name: array for name, array in {**MATRIX, **changed}.items() if array is not None}
    write_npz(tmp_path / "ssl_matrices/g50c.npz", **arrays)
    with pytest.raises(DataFormatError, match=message):
        datasets.load_g50c(data_home=tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        {"X_indices": CSR.indices + 5},
        {"X_indptr": CSR.indptr[:-1]},
        {"X_shape": np.array([4])},
        {"X_data": CSR.data[:2]},
        {"X_shape": np.array([4, 1])},
    ],
)
def test_broken_sparse_matrices(tmp_path, changed):
    write_npz(tmp_path / "ssl_matrices/mac_windows.npz", **{**PARTS, **changed}, y=MATRIX["y"], **SPLITS)
    with pytest.raises(DataFormatError, match="are not a CSR matrix"):
        datasets.load_mac_windows(data_home=tmp_path)


@pytest.mark.parametrize("path", [path for path in LOADERS if path.endswith(".npz")])
@pytest.mark.parametrize("damage", ["truncated", "text", "empty", "flipped", "pickle"])
def test_damaged_npz_files(home, path, damage):
    stored = (home / path).read_bytes()
    middle = stored.index(b"NUMPY") + 90
    changed = {
        "truncated": stored[: len(stored) // 2],
        "text": b"not a matrix",
        "empty": b"",
        "flipped": stored[:middle] + bytes(255 - byte for byte in stored[middle : middle + 40]) + stored[middle + 40 :],
    }
    if damage == "pickle":
        names = np.load(home / path).files
        np.savez(home / path, **{name: np.array([{}], dtype=object) for name in names})
    else:
        (home / path).write_bytes(changed[damage])
    with pytest.raises(DataFormatError, match=Path(path).name):
        LOADERS[path](home)


# --- expression and pathways ------------------------------------------------------------------------------------------


def test_expression_with_pathways(home):
    bunch = datasets.load_diabetes_expression(data_home=home)
    assert bunch.target_names == ["NGT", "DMT"] and bunch.feature_names == ["INS", "A /// B"]
    assert bunch.sample_names == ["s1", "s2", "s3", "s4"]
    assert bunch.pathways.names == ("s",) and bunch.pathways[0].tolist() == [0, 1]
    assert bunch.pathway_columns == {"s": ["INS", "A /// B"]}
    graph = pathway_graph(bunch.pathway_columns, bunch.feature_names)
    assert graph.weights.toarray().tolist() == [[0, 1], [1, 0]]
    report = bunch.pathway_report
    assert (report.n_columns, report.n_multi_symbol, report.n_probes) == (2, 1, 0)
    assert (report.n_symbols, report.n_symbols_found, report.n_sets, report.n_sets_kept) == (3, 2, 2, 1)
    assert datasets.load_diabetes_expression("kegg", data_home=home).pathways[0].tolist() == [1]
    assert "pathways" not in datasets.load_diabetes_expression(None, data_home=home)
    own = write(home / "own.gmt", "mine\t\tINS\n")
    assert datasets.load_diabetes_expression(own, data_home=home).pathways.names == ("mine",)
    with pytest.raises(DataNotFoundError, match=r'"curated", "kegg", None or a \.gmt file'):
        datasets.load_diabetes_expression("reactome", data_home=home)


def test_genes_sets_on_columns_with_several_symbols_and_probes():
    columns = ["A", "B /// C", "A /// D", "AFFX-r2-Bs-lys-3_at", "217024_x_at"]
    groups, report = datasets.map_gene_sets({"one": ["A", "A", "E"], "two": ["C", "D"], "none": ["F"]}, columns)
    assert [group.tolist() for group in groups] == [[0, 2], [1, 2]]
    assert groups.names == ("one", "two") and groups.feature_names == tuple(columns)
    assert (report.n_multi_symbol, report.n_probes, report.n_columns_covered) == (2, 2, 3)
    assert (report.n_symbols, report.n_symbols_found) == (5, 3)
    assert "2 of 3 gene sets kept" in str(report)
    assert datasets.map_gene_sets({"one": ["A"], "two": ["C"]}, columns, min_size=2)[0].names == ("one",)
    with pytest.raises(ValueError, match="none of the 1 gene sets has 1 of the 5 columns"):
        datasets.map_gene_sets({"none": ["F"]}, columns)
    with pytest.raises(ValueError, match="min_size must be at least 1"):
        datasets.map_gene_sets({"one": ["A"]}, columns, min_size=0)


@pytest.mark.parametrize("damage", ["s\tx\tINS\ns\tx\tB\n", "s\tx\tINS\nt x B\n", "\n", "truncated"])
def test_broken_gene_sets(home, damage):
    path = home / "gene_expression/c2.curated.old.gmt.gz"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        write(path, damage)
    with pytest.raises(DataFormatError, match=r"(?s)c2\.curated\.old\.gmt\.gz.*one gene set per line"):
        datasets.load_diabetes_expression(data_home=home)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"genes": np.array(["INS"])}, "genes has 1 entries, expected one for each of 2 columns"),
        ({"samples": np.array(["s"])}, "samples has 1 entries, expected one for each of 4 rows"),
        ({"y": np.array([0, 1, 2, 1])}, "y must number the 2 class_names"),
        ({"genes": np.arange(2)}, "expected strings in 1 dimension"),
    ],
)
def test_broken_expression(home, changed, message):
    write_npz(home / "gene_expression/diabetes.npz", **{**EXPRESSION, **changed})
    with pytest.raises(DataFormatError, match=message):
        datasets.load_diabetes_expression(data_home=home)


# --- lexicons ---------------------------------------------------------------------------------------------------------


def test_word_lists(home):
    words = datasets.load_opinion_words(data_home=home)
    assert (words.positive, words.negative) == (["a+", "good"], ["naïve"])
    (home / "lexicons/stopwords_english_nltk.txt").write_text("\n;\n")
    with pytest.raises(DataFormatError, match="has no words"):
        datasets.load_stopwords(data_home=home)


def test_sentiwordnet(home):
    bunch = datasets.load_sentiwordnet(data_home=home)
    assert bunch.words == ["bad", "good", "nice"]
    # senses 1 and 2 of "good" weigh 1 and 1/2
    np.testing.assert_allclose(bunch.positive, [0, (0.75 + 0.25 / 2) / 1.5, 0.25])
    np.testing.assert_allclose(bunch.negative, [1, (0.5 / 2) / 1.5, 0.5])
    assert bunch.synset_ids == ["a01", "n02", "a03"] and bunch.synset_words[1] == ("good", "nice")
    adjectives = datasets.load_sentiwordnet("a", data_home=home)
    assert adjectives.words == ["bad", "good"] and adjectives.positive.tolist() == [0, 0.75]
    with pytest.raises(ValueError, match="choose from a, n, r, v"):
        datasets.load_sentiwordnet(["x"], data_home=home)
    with pytest.raises(DataFormatError, match="has no synsets of r"):
        datasets.load_sentiwordnet("r", data_home=home)


def test_loader_and_graph_builder_read_the_same_scores(home):
    bunch = datasets.load_sentiwordnet(data_home=home)
    text = gzip.decompress((home / "lexicons/sentiwordnet30.tsv.gz").read_bytes()).decode()
    heading = "\t".join(wordnet.SENTIMENT) + "\n"
    path = write(home / "headed.tsv", text if text.startswith("pos\t") else heading + text)
    scores = sentiment_scores(path)
    assert sorted(scores) == bunch.words
    np.testing.assert_array_equal(
        [scores[word] for word in bunch.words], np.column_stack([bunch.positive, bunch.negative])
    )


def test_words_are_written_as_vectorizers_write_them(tmp_path):
    write(tmp_path / "sentiwordnet30.tsv", "a\t01\t0.5\t0\tGalore(ip)#1 well_done#2\n")
    assert datasets.load_sentiwordnet(data_home=tmp_path).words == ["galore", "well done"]


def test_sentiwordnet_as_published(tmp_path):
    text = "# comment\n# POS\tID\na\t00001740\t0.125\t0\table#1\t(usually followed by `to')\n\t\t\t\t\t\n"
    write(tmp_path / "lexicons/SentiWordNet_3.0.0.txt", text)
    assert datasets.load_sentiwordnet(data_home=tmp_path).words == ["able"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\t01\t0.5\t0", "line 1: 4 cells; expected 5"),
        ("a\t01\thigh\t0\tgood#1", "scores 'high', '0' must be from 0 to 1"),
        ("a\t01\t1.5\t0\tgood#1", "must be from 0 to 1"),
        ("a\t01\t0.5\t0\tgood", "'good' is not of the form lemma#sense"),
        ("a\t01\t0.5\t0\tgood#0", "'good#0' is not of the form lemma#sense"),
    ],
)
def test_broken_sentiwordnet(tmp_path, line, message):
    write(tmp_path / "sentiwordnet30.tsv", line + "\n")
    with pytest.raises(DataFormatError, match=message):
        datasets.load_sentiwordnet(data_home=tmp_path)


def test_wordnet(home):
    bunch = datasets.load_wordnet(relations=["similar_to"], data_home=home)
    assert bunch.synonyms == [("awful", "bad"), ("fine", "good"), ("fine", "nice"), ("good", "nice")]
    assert bunch.antonyms == [("bad", "good")]
    assert bunch.related == {"similar_to": [("awful", "bad")]}  # a word is not related to itself
    assert bunch.synsets["a03"] == ("awful", "bad")
    some = datasets.load_wordnet({"good": 0, "nice": 1, "awful": 2}, "also_see", data_home=home)
    assert (some.synonyms, some.antonyms) == ([("good", "nice")], [])
    assert some.related == {"also_see": [("awful", "good"), ("awful", "nice")]}
    with pytest.raises(ValueError, match="unknown relation 'meronym'; the file has also_see, similar_to"):
        datasets.load_wordnet(relations=["meronym"], data_home=home)
    with pytest.raises(TypeError, match="not the single string"):
        datasets.load_wordnet("good", data_home=home)
    write(home / "lexicons/wordnet30_relations.tsv.gz", "a\t99\tsimilar_to\ta\t01\n")
    with pytest.raises(DataFormatError, match="there is no synset a99"):
        datasets.load_wordnet(relations=["similar_to"], data_home=home)


# --- word vectors -----------------------------------------------------------------------------------------------------


def test_word_vectors_from_npz(home):
    bunch = datasets.load_word_vectors(data_home=home)
    assert bunch.words == ["the", "cat", "dog"] and bunch.data.dtype == np.float64
    assert bunch.missing == [] and bunch.columns.tolist() == [0, 1, 2]
    bunch = datasets.load_word_vectors({"dog": 4, "cow": 2, "the": 1}, data_home=home, dtype=np.float32)
    assert (bunch.words, bunch.columns.tolist(), bunch.missing) == (["the", "dog"], [1, 4], ["cow"])
    np.testing.assert_array_equal(bunch.data, np.array([[1, 2], [5, 6]], dtype=np.float32))
    assert bunch.rank.tolist() == [0, 2] and bunch.data.dtype == np.float32
    listed = write_npz(home / "listed.npz", vectors=np.eye(2), words=np.array(["a", "b"]))
    assert datasets.load_word_vectors(path=listed).words == ["a", "b"]


GLOVE_TEXT = "the 0.5 -1 2e-1\n. . . 1 2 3\ncat 4 5 6\nthe 9 9 9\nübel 7 8 9\n"


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.vec"])
@pytest.mark.parametrize("header", ["", "5 3\n"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_word_vectors_from_text(tmp_path, name, header, end):
    path = write(tmp_path / name, (header + GLOVE_TEXT).replace("\n", end))
    bunch = datasets.load_word_vectors(path=path)
    assert bunch.words == ["the", ". . .", "cat", "übel"]  # the first of two vectors counts
    np.testing.assert_array_equal(bunch.data, [[0.5, -1, 0.2], [1, 2, 3], [4, 5, 6], [7, 8, 9]])
    some = datasets.load_word_vectors(["übel", "unicorn", "the"], path=path)
    assert (some.words, some.columns.tolist(), some.missing) == (["übel", "the"], [0, 2], ["unicorn"])
    np.testing.assert_array_equal(some.data, [[7, 8, 9], [0.5, -1, 0.2]])


def test_no_word_has_a_vector(tmp_path):
    path = write(tmp_path / "v.txt", GLOVE_TEXT)
    bunch = datasets.load_word_vectors(["x", "y"], path=path)
    assert bunch.data.shape == (0, 3) and bunch.missing == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2 3\ncat 1 2\n", "line 2: expected a word and 3 numbers.*it has 2"),
        ("the 1 2 3\ncat 1 two 3\n", "line 2: expected a word and 3 numbers"),
        ("the 1 2 3\ncat 1 nan 3\n", "line 2.*NaN or infinite"),
        ("3 2\nthe 1 2\ncat 3 4\n", "has 2 vectors, but its first line says 3"),
        ("the\n", "line 1: expected a word and its vector"),
        ("the quick fox\n", "line 1: expected a word and 1 numbers"),
        (b"2 2\nthe \x00\x00\x80\x3f\x00\x00\x80\x3f\n", "binary format, convert it to text"),
        (b"\xff\xfe 1 2\n", "line 1: not UTF-8"),
        ("", "is empty"),
    ],
)
def test_broken_text_vectors(tmp_path, text, message):
    with pytest.raises(DataFormatError, match=message):
        datasets.load_word_vectors(path=write(tmp_path / "v.txt", text))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({**VECTORS, "words": np.array("the\ncat")}, "words has 2 entries, expected one for each of 3 rows of vectors"),
        ({**VECTORS, "rank": np.arange(2)}, "rank has 2 entries, expected one for each of 3 words"),
        ({"vectors": VECTORS["vectors"]}, "has no array words"),
        ({**VECTORS, "vectors": np.ones(3)}, "expected numbers in 2 dimensions"),
    ],
)
def test_broken_npz_vectors(tmp_path, arrays, message):
    with pytest.raises(DataFormatError, match=message):
        datasets.load_word_vectors(path=write_npz(tmp_path / "v.npz", **arrays))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocabulary": "cat"}, TypeError, "not the single string"),
        ({"vocabulary": []}, ValueError, "vocabulary is empty"),
        ({"vocabulary": ["a", "a"]}, ValueError, "contains a word twice"),
        ({"vocabulary": {"a": 0, "b": 0}}, ValueError, "distinct columns"),
        ({"dtype": int}, TypeError, "floating-point"),
        ({"path": "nowhere.txt"}, DataNotFoundError, "which is not a file"),
    ],
)
def test_bad_requests_for_vectors(home, options, error, message):
    with pytest.raises(error, match=message):
        datasets.load_word_vectors(**options, data_home=home)


# --- damaged text files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in LOADERS if path.endswith(".gz")])
def test_truncated_gzip_files(home, path):
    (home / path).write_bytes((home / path).read_bytes()[:-9])
    with pytest.raises(DataFormatError, match=rf"{Path(path).name} is truncated or damaged"):
        LOADERS[path](home)
    (home / path).write_bytes(b"plain text")
    with pytest.raises(DataFormatError, match="not compressed although its name ends in"):
        LOADERS[path](home)
    (home / path).write_bytes(b"")
    with pytest.raises(DataFormatError, match="is empty"):
        LOADERS[path](home)


GOOD = {"id": "pos/1", "label": "pos", "fold": 3, "text": "fine"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "pos/1", ', r"line 3: not valid JSON \(.*column"),
        ("[1, 2]", "line 3: expected a JSON object, not list"),
        (json.dumps({**GOOD, "fold": "3"}), "line 3: field 'fold' is '3'; expected type int"),
        (json.dumps({**GOOD, "fold": True}), "field 'fold' is True"),
        (json.dumps({"id": "x", "label": "pos", "fold": 1}), "field 'text' is missing; expected type str"),
        (json.dumps({**GOOD, "label": "mixed"}), "document pos/1 has the label 'mixed'; expected neg or pos"),
        (b"\xff\xfe", "line 3: not utf-8 text"),
    ],
)
def test_broken_lines_are_named(tmp_path, line, message):
    bad = line if isinstance(line, bytes) else line.encode()
    write(tmp_path / MOVIES, json.dumps(GOOD).encode() + b"\n\n" + bad + b"\n")
    with pytest.raises(DataFormatError, match=message):
        datasets.load_movie_reviews(data_home=tmp_path)


def test_files_without_documents(tmp_path):
    write(tmp_path / MOVIES, "\n\n")
    with pytest.raises(DataFormatError, match="has no documents"):
        datasets.load_movie_reviews(data_home=tmp_path)
    write_json_lines(tmp_path / NEWS, [post(1, "sci.med", "train")])
    with pytest.raises(DataFormatError, match='no document whose split is "test"'):
        datasets.fetch_20newsgroups("test", data_home=tmp_path)


def test_progress_is_shown_when_asked_for(home, capsys, monkeypatch):
    datasets.load_movie_reviews(data_home=home)
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("cvxstructreg.datasets.reading.PROGRESS_INTERVAL", -1.0)
    datasets.load_movie_reviews(data_home=home, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert "movie_polarity_v2.jsonl.gz: 1 lines, 100 %" in lines
    assert lines[-1] == "movie_polarity_v2.jsonl.gz: 3 lines read"


# --- the real data ----------------------------------------------------------------------------------------------------


def check_newsgroups(home):
    train = datasets.fetch_20newsgroups(data_home=home)
    # the beginning of scikit-learn's own training set, as its user guide prints it
    assert train.target[:10].tolist() == [7, 4, 4, 1, 14, 16, 13, 3, 2, 4]
    assert len(train.data) == 11314 and len(train.target_names) == 20
    sizes = {"computer": 1168, "science": 1187, "sports": 1197, "religion": 1079}
    test_sizes = {"computer": 777, "science": 790, "sports": 796, "religion": 717}
    everything = datasets.fetch_20newsgroups("all", data_home=home)
    for pair, names in datasets.NEWSGROUP_PAIRS.items():
        chosen = np.isin(everything.target, [everything.target_names.index(name) for name in names])
        if pair in sizes:
            assert np.sum(everything.split[chosen] == "train") == sizes[pair]
            assert np.sum(everything.split[chosen] == "test") == test_sizes[pair]


def check_movies(home):
    bunch = datasets.load_movie_reviews(data_home=home)
    assert np.bincount(bunch.fold * 2 + bunch.target).tolist() == [100] * 20
    assert bunch.sentences[0][1] == "they get into an accident ."


def check_domains(home):
    bunch = datasets.load_multi_domain_reviews("electronics", data_home=home)
    assert np.bincount(bunch.target).tolist() == [1000, 1000]
    assert bunch.n_repeated == len(bunch.data) - len(np.unique(bunch.groups)) > 0
    assert np.all((bunch.rating > 3) == (bunch.target == 1))


def check_matrices(home):
    for load, shape, n_classes in [
        (datasets.load_g50c, (550, 50), 2),
        (datasets.load_mac_windows, (1946, 7511), 2),
        (datasets.load_uspst, (2007, 256), 10),
    ]:
        bunch = load(data_home=home)
        assert bunch.data.shape == shape and len(bunch.target_names) == n_classes
        assert bunch.labeled_idx.shape == (10, 50) and bunch.unlabeled_idx.shape == (10, shape[0] - 50)


def check_expression(home):
    bunch = datasets.load_diabetes_expression(data_home=home)
    report = bunch.pathway_report
    assert bunch.data.shape == (34, 15056) and np.bincount(bunch.target).tolist() == [17, 17]
    assert (report.n_multi_symbol, report.n_probes) == (210, 2153)
    assert (report.n_sets, report.n_symbols_found, report.n_symbols) == (522, 5158, 5602)
    report = datasets.load_diabetes_expression("kegg", data_home=home).pathway_report
    assert (report.n_sets, report.n_symbols_found, report.n_symbols) == (186, 3716, 5245)


def check_lexicons(home):
    words = datasets.load_opinion_words(data_home=home)
    assert (len(words.positive), len(words.negative)) == (2006, 4783)
    assert len(datasets.load_stopwords(data_home=home).words) == 179
    chosen = [*words.positive, *words.negative]
    bunch = datasets.load_wordnet(chosen, data_home=home)
    assert ("bad", "good") in bunch.antonyms and ("awful", "terrible") in bunch.synonyms
    senti = datasets.load_sentiwordnet(data_home=home)
    assert len(senti.synset_ids) == 117659
    score = dict(zip(senti.words, senti.positive - senti.negative, strict=True))
    known = [np.mean([score[word] for word in side if word in score]) for side in (words.positive, words.negative)]
    assert known[0] > 0.1 > -0.1 > known[1]  # the two lexicons agree on the whole


def check_vectors(home):
    bunch = datasets.load_word_vectors({"good": 0, "great": 1, "carburetor": 2}, data_home=home)
    unit = bunch.data / np.linalg.norm(bunch.data, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.6 > unit[0] @ unit[2]
    assert datasets.load_word_vectors(data_home=home).data.shape == (49819, 100)


REAL = [
    pytest.param(check_newsgroups, marks=pytest.mark.slow),
    check_movies,
    check_domains,
    check_matrices,
    check_expression,
    pytest.param(check_lexicons, marks=pytest.mark.slow),
    check_vectors,
]
# one skip, not one for each, where there are no data: skips are counted
ABSENT = [pytest.param(None, marks=pytest.mark.skip(reason="no data: set CVXSTRUCTREG_DATA to their folder"))]


@pytest.mark.parametrize("check", REAL if DATA else ABSENT)
def test_real_data(check):
    check(DATA)
