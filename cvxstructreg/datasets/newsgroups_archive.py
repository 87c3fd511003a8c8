"""The archive 20news-bydate.tar.gz: downloaded, checked against its known checksum, and read without unpacking."""

from __future__ import annotations

import io
import re
import tarfile
import time
import urllib.request
import zlib

from cvxstructreg.datasets.reading import DataFormatError, Record
from cvxstructreg.datasets.storing import sha256

#: The copy (14 MB) that scikit-learn downloads, with its SHA-256 checksum.
URL = "https://ndownloader.figshare.com/files/5975967"
CHECKSUM = "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610"
#: Attempts, seconds between attempts, seconds to wait for an answer, and an upper bound on the size in bytes.
ATTEMPTS, DELAY, TIMEOUT, MOST_BYTES = 3, 1.0, 60.0, 100_000_000

_MEMBER = re.compile(r"(?:\./)?20news-bydate-(train|test)/([^/]+)/([^/]+)")


def downloaded_posts(verbose: bool = False) -> list[Record]:
    """Download the archive and return its posts; raise OSError if that fails, DataFormatError if the file is wrong."""
    if verbose:
        print(f"downloading {URL} (14 MB)", flush=True)
    content = _downloaded()
    if sha256(content) != CHECKSUM:
        raise DataFormatError(
            f"the archive from {URL} has the SHA-256 checksum {sha256(content)}, not {CHECKSUM}: the download is "
            "damaged or was changed, and is not used; try again, or put the file into the data folder by hand"
        )
    return archived_posts(content, URL)


def _downloaded() -> bytes:
    for _ in range(ATTEMPTS - 1):
        try:
            return _read_url()
        except OSError:  # includes the errors of urllib and timeouts
            time.sleep(DELAY)
    return _read_url()


def _read_url() -> bytes:
    with urllib.request.urlopen(URL, timeout=TIMEOUT) as answer:
        return bytes(answer.read(MOST_BYTES))


def archived_posts(archive: bytes, name: object) -> list[Record]:
    """Return the posts of an archive, given by its content; ``name`` is for messages."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as members:
            posts = [post for member in members if (post := _post(members, member)) is not None]
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataFormatError(f"{name} is not a tar archive, or is damaged ({error}); get the file again") from error
    if not posts:
        raise DataFormatError(f"{name} has no posts named 20news-bydate-train/newsgroup/number; get the file again")
    return posts


def _post(members: tarfile.TarFile, member: tarfile.TarInfo) -> Record | None:
    """Return one post; None for folders, links and anything else in the archive."""
    place = _MEMBER.fullmatch(member.name)
    stream = members.extractfile(member) if member.isreg() and place else None
    if stream is None or place is None:
        return None
    split, group, number = place.groups()
    # Latin-1, as scikit-learn reads the posts: every byte is a character
    return {"id": f"{group}/{number}", "split": split, "label": group, "text": stream.read().decode("latin-1")}
