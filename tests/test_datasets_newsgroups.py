"""20 Newsgroups: the download, the parts of posts, and the same order as scikit-learn."""

from __future__ import annotations

import ast
import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from dataset_files import LOADERS, NEWS, folder_with_every_set, hide_folders, post, write
from sklearn.utils import Bunch

from cvxstructreg import datasets
from cvxstructreg.datasets import DataFormatError, DataNotFoundError, write_json_lines
from cvxstructreg.datasets.newsgroups import without_footer, without_headers, without_quotes
from cvxstructreg.datasets.storing import sha256


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hide_folders(monkeypatch, tmp_path)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder_with_every_set(tmp_path)


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
