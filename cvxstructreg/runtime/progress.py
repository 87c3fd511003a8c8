"""Progress lines for long computations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(
    items: Iterable[Item], label: str, total: int, verbose: bool, size: Callable[[Item], int] | None = None
) -> Iterator[Item]:
    """Yield the items; if verbose, print the progress at most once a second and at the end.

    Parameters
    ----------
    items : iterable
    label : str
        The name of the work, printed in front of the counts.
    total : int
        The sum of the sizes of all items.
    verbose : bool
        Whether to print at all.
    size : function of an item, optional
        The share of an item in the total; 1 by default.

    Examples
    --------
    >>> list(progress("ab", "letters", 2, verbose=False))
    ['a', 'b']
    """
    done, start = 0, time.monotonic()
    printed = start
    for item in items:
        yield item
        done += 1 if size is None else size(item)
        now = time.monotonic()
        if verbose and (done >= total or now - printed >= 1.0):
            print(f"{label}: {done} of {total} ({now - start:.1f} s)", flush=True)
            printed = now
