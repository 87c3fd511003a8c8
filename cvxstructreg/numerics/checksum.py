"""Checksums of arrays, about as fast as memory is read; parts of an array may be added while it is used otherwise.

An array is read in stripes of 512 words w_i of 64 bits, the last one filled up with zeros. Each stripe has two sums
modulo 2^64, with fixed numbers k_i:

    p = sum_i low(w_i ^ k_i) high(w_i ^ k_i),    t = sum_i w_i        (low and high: halves of 32 bits)

The sums of the stripes enter two chains, ``h = mixed(h ^ p)`` and ``g = mixed(g ^ t)``, where mixing is one-to-one. So
a change of one word always changes g. The products depend on the places of the words, so that words which are swapped
change h. The type, the shape and the bytes of the array are part of the result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from cvxstructreg.numerics.arrays import Array

#: Words of a stripe.
STRIPE = 512
#: From so many words on, compiled loops are loaded.
COMPILE_FROM = 50_000
#: Odd numbers of the mixing steps, and the number of bits by which they rotate.
FACTORS, TURN = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F), 31


def _numbers() -> Any:
    """512 fixed numbers of 64 bits without a pattern (the generator splitmix64)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, STRIPE + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


KEYS = _numbers()


class Sums:
    """The checksum of one array; its words may be added in several steps.

    Attributes
    ----------
    words : array of uint64
        All whole words of the array, in order.
    state : array of three uint64
        The number of words that were added, and the two chains.
    """

    def __init__(self, array: Array) -> None:
        array = np.ascontiguousarray(array)
        self.head = f"{array.dtype.str} {array.shape}"
        flat = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, dtype=np.uint8)
        whole = flat.size - flat.size % 8
        self.words, self._rest = flat[:whole].view(np.uint64), flat[whole:]
        self.state = np.zeros(3, dtype=np.uint64)

    def digest(self) -> bytes:
        """The checksum of the whole array."""
        _add(self.words, self.state, len(self.words))
        left = self.words[int(self.state[0]) :]
        last, state = np.zeros(STRIPE, dtype=np.uint64), self.state.copy()
        last[: len(left)] = left
        if self._rest.size:
            last[len(left) : len(left) + 1].view(np.uint8)[: self._rest.size] = self._rest
        state[0] = 0
        _add(last, state, STRIPE)
        return f"{self.head} {state[1]} {state[2]};".encode()


def checksum(arrays: Mapping[str, Any], sums: Mapping[str, Sums] | None = None) -> int:
    """The checksum of named arrays in their order, of 128 bits; ``sums`` are those of some of them that were begun.

    Examples
    --------
    >>> import numpy as np
    >>> a = {"data": np.array([1.0, 2.0, 3.0])}
    >>> checksum(a) == checksum({"data": np.array([1.0, 2.0, 3.0])})
    True
    >>> checksum(a) == checksum({"data": np.array([2.0, 1.0, 3.0])})
    False
    """
    known, whole = sums or {}, hashlib.blake2b(digest_size=16)
    for name, array in arrays.items():
        whole.update(name.encode() + (known[name] if name in known else Sums(array)).digest())
    return int.from_bytes(whole.digest(), "big")


def _add(words: Any, state: Any, upto: int) -> None:
    """Add all whole stripes that begin before word ``upto``."""
    if len(words) >= COMPILE_FROM:
        from cvxstructreg.numerics.compiled_checksum import add_stripes  # numba is slow to load

        add_stripes(words, KEYS, state, upto)
        return
    first, count = int(state[0]), (len(words) - int(state[0])) // STRIPE
    if count <= 0 or first >= upto:
        return
    stripes = words[first : first + count * STRIPE].reshape(count, STRIPE)
    with np.errstate(over="ignore"):
        keyed = stripes ^ KEYS
        products = ((keyed & np.uint64(0xFFFFFFFF)) * (keyed >> np.uint64(32))).sum(axis=1, dtype=np.uint64)
        totals = stripes.sum(axis=1, dtype=np.uint64)
    h, g = int(state[1]), int(state[2])
    for p, t in zip(products.tolist(), totals.tolist(), strict=True):
        h, g = _mixed(h ^ p, *FACTORS), _mixed(g ^ t, *FACTORS[::-1])
    state[:] = first + count * STRIPE, h, g


def _mixed(value: int, first: int, second: int) -> int:
    """A number of 64 bits from another one; one-to-one."""
    whole = (1 << 64) - 1
    value = value * first & whole
    value = (value << TURN | value >> (64 - TURN)) & whole
    return value * second & whole
