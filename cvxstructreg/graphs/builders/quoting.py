"""Posts that quote each other in disagreement (Goldberg, Zhu and Wright 2007, section 4.3)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxstructreg.core.checks import check_range, plural
from cvxstructreg.runtime.progress import progress

_SHOUT = re.compile(r"\b[A-Z]{4,}\s+[A-Z]{4,}\b")
_MARKS = re.compile(r"[?!]")
_MIN_MATCH = 10  # a shorter line, such as "Yes.", does not identify the quoted post


def shows_disagreement(text: str) -> bool:
    """Whether a text has two or more of ? and !, or two consecutive upper-case words longer than three letters.

    Examples
    --------
    >>> [shows_disagreement(text) for text in ("Why?!", "That is PLAIN WRONG", "I see.", "NASA said so")]
    [True, True, False, False]
    """
    return len(_MARKS.findall(text)) >= 2 or _SHOUT.search(text) is not None


def quoting_pairs(
    posts: Sequence[str],
    reply_to: ArrayLike | None = None,
    authors: Sequence[Any] | None = None,
    quote: str = r"\s*\w{0,3}[>|:]",
    min_count: int = 1,
    verbose: bool = False,
) -> NDArray[np.int64]:
    """Return pairs of posts (or authors) in which one quotes the other and disagrees right next to the quote.

    A quote is a run of lines that begin with a mark such as >. The text next to the quote is the paragraph before it
    and the paragraph after it, up to an empty line or the next quote. That text must
    `show disagreement <shows_disagreement>`.

    Parameters
    ----------
    posts : sequence of str
    reply_to : sequence of int, optional
        The post to which each post replies, -1 for none. By default this is the post that contains most of the quoted
        lines (of ten letters or more) unquoted.
    authors : sequence, optional
        Author of each post. Then the pairs are pairs of authors, numbered as in ``np.unique(authors)``.
    quote : str
        Regular expression for the beginning of a quoted line.
    min_count : int
        Number of posts with a disagreeing quote that a pair needs; several such quotes in one post count once. The
        paper asks for more than two posts between two authors: ``min_count=3``.
    verbose : bool
        Whether to print progress.

    Returns
    -------
    pairs : int64 array of shape (n_pairs, 2)
        Each pair once, smaller number first.

    Examples
    --------
    >>> reply = ["> The moon is made of cheese.", "Are you serious?!"]
    >>> quoting_pairs(["The moon is made of cheese.", "Salt is good.", chr(10).join(reply)]).tolist()
    [[0, 2]]
    """
    texts = _checked_posts(posts)
    mark = re.compile(quote)
    parents = None if reply_to is None else _checked_parents(reply_to, len(texts))
    homes = _posts_by_line(texts, mark) if parents is None else {}
    people = np.arange(len(texts)) if authors is None else _author_numbers(authors, len(texts))
    counts: Counter[tuple[int, int]] = Counter()
    for index, text in enumerate(progress(texts, "quotes", len(texts), verbose)):
        opposed: set[tuple[int, int]] = set()
        for quoted, beside in _quotes(text, mark):
            if not shows_disagreement(beside):
                continue
            source = _source(quoted, homes, index) if parents is None else int(parents[index])
            if source >= 0 and people[source] != people[index]:
                one, other = int(people[source]), int(people[index])
                opposed.add((min(one, other), max(one, other)))
        counts.update(opposed)
    pairs = sorted(pair for pair, count in counts.items() if count >= min_count)
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _quotes(text: str, mark: re.Pattern[str]) -> list[tuple[list[str], str]]:
    """Return the lines of each quote without their marks, and the paragraphs on both sides of it."""
    lines = text.splitlines()
    quoted = [mark.match(line) is not None for line in lines]
    found, position = [], 0
    while position < len(lines):
        if not quoted[position]:
            position += 1
            continue
        start = position
        while position < len(lines) and quoted[position]:
            position += 1
        before = _paragraph(lines, quoted, range(start - 1, -1, -1))[::-1]
        after = _paragraph(lines, quoted, range(position, len(lines)))
        content = [mark.sub("", line, count=1) for line in lines[start:position]]
        found.append((content, "\n".join([*before, "", *after])))
    return found


def _paragraph(lines: list[str], quoted: list[bool], order: range) -> list[str]:
    """Return the lines next to a quote; empty lines between the quote and the paragraph are skipped."""
    paragraph: list[str] = []
    for position in order:
        if quoted[position] or (paragraph and not lines[position].strip()):
            break
        if lines[position].strip():
            paragraph.append(lines[position])
    return paragraph


def _key(line: str) -> str:
    return " ".join(re.findall(r"\w+", line.lower()))


def _posts_by_line(texts: list[str], mark: re.Pattern[str]) -> dict[str, list[int]]:
    """Return, for each unquoted line, the posts that contain it."""
    homes: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        for key in {_key(line) for line in text.splitlines() if not mark.match(line)}:
            if len(key) >= _MIN_MATCH:
                homes[key].append(index)
    return homes


def _source(quoted: list[str], homes: dict[str, list[int]], index: int) -> int:
    """Return the post that contains most of the quoted lines (the first in a tie), or -1."""
    votes = Counter(home for line in quoted for home in homes.get(_key(line), []) if home != index)
    return min(votes, key=lambda home: (-votes[home], home)) if votes else -1


def _checked_posts(posts: Sequence[str]) -> list[str]:
    if isinstance(posts, str):
        raise TypeError("posts must be a list of texts, not a single string")
    texts = list(posts)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"post {index} is {text!r}, not a string")
    return texts


def _checked_parents(reply_to: ArrayLike, n: int) -> NDArray[np.int64]:
    parents = np.asarray(reply_to)
    if parents.shape != (n,) or parents.dtype.kind not in "iu":
        raise ValueError(f"reply_to must have one post number (or -1) for each of {plural(n, 'post')}")
    check_range(parents[parents != -1].astype(np.int64), n, "post", "reply_to")
    return parents.astype(np.int64)


def _author_numbers(authors: Sequence[Any], n: int) -> NDArray[np.int64]:
    if len(authors) != n:
        raise ValueError(
            f"got {plural(len(authors), 'author')}, but {plural(n, 'post')}; give one author for each post"
        )
    return np.asarray(np.unique(np.asarray(authors), return_inverse=True)[1], dtype=np.int64)
