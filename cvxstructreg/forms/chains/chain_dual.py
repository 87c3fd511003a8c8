"""The dual points of a long chain that belong to its weights, computed when they are first read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cvxstructreg.forms.chains.plain_chain import PlainChain
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.runtime.lazy import cached_property


class ChainDual(Mapping[int, Array]):
    """The dual points of loss and edges, by the numbers of their terms; ``theta`` must not change any more.

    Their bound is computed without them (:meth:`PlainChain.proof`), so that most are never stored.
    """

    def __init__(self, chain: PlainChain, theta: Array, loss: int, edges: int) -> None:
        self.chain, self.theta, self.numbers = chain, theta, (loss, edges)

    @cached_property
    def points(self) -> dict[int, Array]:
        """Both points."""
        return dict(zip(self.numbers, self.chain.dual(self.theta[:, 0]), strict=True))

    def belongs(self, chain: PlainChain, theta: Array) -> bool:
        """Whether these are the dual points of a chain at these weights."""
        return self.chain is chain and self.theta is theta

    def __getitem__(self, number: int) -> Array:
        return self.points[number]

    def __contains__(self, number: object) -> bool:
        return number in self.numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return repr(self.points)

    def __reduce__(self) -> Any:
        return dict, (self.points,)


@dataclass(frozen=True, eq=False)
class ChainPoint:
    """One of these dual points."""

    dual: ChainDual
    number: int

    def gather(self) -> Array:
        """The dual point."""
        return self.dual[self.number]
