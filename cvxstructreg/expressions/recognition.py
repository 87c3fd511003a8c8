"""Known structure in a cone program: absolute values, Euclidean norms, squares and Huber functions of linear maps.

An auxiliary variable of the program is *defined* if equations make it a linear function of x. An auxiliary variable a
with a positive cost is an *epigraph* if it occurs in one second-order cone only, as ``a >= ||K x||``, or in two
inequalities only, ``a >= k'x`` and ``a >= -k'x``. A program of nothing else is a sum of penalties that the library has
formulas for. Anything else is left to the cone solver: None is returned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from cvxstructreg.core.objective import Term
from cvxstructreg.expressions.cone_program import ConeProgram
from cvxstructreg.groups import Groups
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.composed import compose
from cvxstructreg.penalties.group_lasso import GroupLasso
from cvxstructreg.penalties.huber_penalty import HuberPenalty
from cvxstructreg.penalties.l1 import L1
from cvxstructreg.penalties.quadratic import Quadratic
from cvxstructreg.penalties.ridge import Ridge


@dataclass(eq=False)
class Found:
    """Rows K of linear maps with their costs: absolute values, Huber functions with their M, and blocks for norms."""

    size: int
    absolute: list[tuple[Any, Array]] = field(default_factory=list)
    huber: list[tuple[Any, Array, Array]] = field(default_factory=list)
    norms: list[tuple[Any, Any, Array]] = field(default_factory=list)  # K, sizes, costs
    squares: Term | None = None

    @property
    def acts_by_column(self) -> bool:
        """Whether the function of a matrix with these terms is the sum over its columns."""
        return not self.norms

    def terms(self) -> list[Term]:
        """The penalties with their strengths."""
        found = [] if self.squares is None else [self.squares]
        if self.absolute:
            K = sp.vstack([K for K, _ in self.absolute], format="csr")
            found += _absolute(K, np.concatenate([costs for _, costs in self.absolute]))
        for K, costs, ends in self.huber:
            for M in np.unique(ends):
                part, outer = sp.csr_array(K[ends == M]), HuberPenalty(float(M), weights=costs[ends == M])
                found.append(1.0 * (outer if _is_signed_identity(part) else compose(outer, part)))
        for K, sizes, costs in self.norms:
            found += _norms(K, sizes, costs, self.size)
        return found


def recognised(program: ConeProgram) -> Found | None:
    """The structure of the program; None if some part of it has no known formula."""
    cones = program.cones
    if cones.psd or cones.exp or cones.p3d or cones.pnd or program.constant or program.b.any():
        return None
    return _Reading(program).result()


class _Reading:
    """Reads a program: equations, nested epigraphs, squares, costs and cones in turn."""

    def __init__(self, program: ConeProgram) -> None:
        self.program, self.found = program, Found(program.size)
        n = program.n_variables
        self.A, self.by_column = sp.csr_array(program.A), sp.csc_array(program.A)
        for matrix in (self.A, self.by_column):
            matrix.eliminate_zeros()
        self.P = sp.csr_array(program.P)
        self.P.eliminate_zeros()
        self.cost = program.c.copy()
        self.known = np.zeros(n, dtype=bool)
        self.known[program.at] = True
        self.maps = sp.csr_array((np.ones(program.size), (program.at, np.arange(program.size))), (n, program.size))
        self.done = np.zeros(n, dtype=bool)  # variables that are accounted for
        self.used = np.zeros(self.A.shape[0], dtype=bool)  # rows that are
        self.huber_costs: list[tuple[float, float]] = []

    def result(self) -> Found | None:
        """The structure; None if a part of the program has no known formula."""
        open_rows = self._defined()
        if open_rows is None or not all(self._is_huber(i) for i in open_rows):
            return None
        self._collect_huber(open_rows)
        if not self._squares() or np.any(self.maps.T @ np.where(self.known, self.cost, 0.0)):
            return None
        return self.found if self._unnested() and self._cones() else None

    def _defined(self) -> list[int] | None:
        """Express auxiliary variables by x, one round of equations after the other; return the other equations."""
        rows = np.arange(self.program.cones.zero)
        while rows.size:
            part = self.A[rows]
            unknown = sp.csr_array(part.multiply(~self.known[None, :]))
            unknown.eliminate_zeros()
            counts = np.diff(unknown.indptr)
            if np.any(counts == 0):
                return None  # an equation between the x
            ready = np.flatnonzero(counts == 1)
            _, first = np.unique(unknown.indices[unknown.indptr[ready]], return_index=True)
            ready = ready[first]  # one equation for each variable
            if not ready.size:
                break
            places = unknown.indptr[ready]
            self._define(part[ready], unknown.indices[places], unknown.data[places])
            rows = np.delete(rows, ready)
        return [int(i) for i in rows]

    def _define(self, rows: Any, variables: Any, pivots: Array) -> None:
        """v_j = -(the rest of the row) / pivot."""
        images = sp.diags_array(-1.0 / pivots, format="csr") @ sp.csr_array(rows @ self.maps)
        shape = (len(self.known), len(variables))
        spread = sp.csr_array((np.ones(len(variables)), (variables, np.arange(len(variables)))), shape)
        self.maps = sp.csr_array(self.maps + spread @ images)
        self.known[variables] = True

    def _others(self, i: int) -> dict[int, float]:
        """The unknown variables in the slack of row i, with their factors."""
        start, end = self.A.indptr[i], self.A.indptr[i + 1]
        entries = zip(self.A.indices[start:end], self.A.data[start:end], strict=True)
        return {int(j): -float(a) for j, a in entries if not self.known[j]}

    def _rows_of(self, j: int) -> list[int]:
        start, end = self.by_column.indptr[j], self.by_column.indptr[j + 1]
        return [int(i) for i in self.by_column.indices[start:end] if not self.used[i]]

    def _is_free(self, i: int) -> bool:
        """Whether row i has no x in it."""
        start, end = self.A.indptr[i], self.A.indptr[i + 1]
        return not np.any(self.known[self.A.indices[start:end]])

    def _above(self, s: int, rows: list[int]) -> tuple[int, float] | None:
        """(t, factor) if the two rows are t >= factor s and t >= -factor s, and t has no other row and a cost."""
        zero, nonneg = self.program.cones.zero, self.program.cones.nonneg
        if len(rows) != 2 or not all(zero <= i < zero + nonneg and self._is_free(i) for i in rows):
            return None
        ends = [self._others(i) for i in rows]
        tops = {j for end in ends for j in end if j != s}
        if len(tops) != 1 or any(len(end) != 2 for end in ends):
            return None
        t = tops.pop()
        signs = [end[s] / end[t] for end in ends]
        usable = self.cost[t] > 0.0 and all(end[t] > 0.0 for end in ends) and len(self._rows_of(t)) == 2
        return (t, abs(signs[0])) if usable and signs[0] == -signs[1] and not self._squared(t) else None

    def _squared(self, j: int) -> int:
        return int(self.P.indptr[j + 1] - self.P.indptr[j])

    def _is_huber(self, i: int) -> bool:
        """Whether row i is k'x = n + s with the costs p n^2 and c |s|: the Huber function of k'x."""
        others = self._others(i)
        if len(others) != 2:
            return False
        n, s = sorted(others, key=lambda j: -self._squared(j))
        if self._squared(n) != 1 or self.P[n, n] <= 0.0 or self._squared(s) or self.cost[n] or self.cost[s]:
            return False
        rows = [r for r in self._rows_of(s) if r != i]
        above = self._above(s, rows)
        if above is None or self._rows_of(n) != [i]:
            return False
        t, factor = above
        p = 0.5 * float(self.P[n, n]) / others[n] ** 2  # in units of k'x = -others[n] n - others[s] s
        slope = float(self.cost[t]) * factor / abs(others[s])
        self.huber_costs.append((p, slope / (2.0 * p)))
        self.done[[n, s, t]] = True
        self.used[[i, *rows]] = True
        return True

    def _collect_huber(self, rows: list[int]) -> None:
        if rows:
            costs, ends = (np.array(part) for part in zip(*self.huber_costs, strict=True))
            self.found.huber.append((sp.csr_array(self.A[rows] @ self.maps), costs, ends))

    def _squares(self) -> bool:
        """1/2 v'Pv as squares of x."""
        P = sp.coo_array(self.P)
        kept = ~self.done[P.row]
        if not kept.any():
            return True
        if not np.all(self.known[P.row[kept]] & self.known[P.col[kept]]):
            return False
        P = sp.csr_array((P.data[kept], (P.row[kept], P.col[kept])), shape=P.shape)
        rows = np.flatnonzero(np.diff(P.indptr))
        if np.all(P.indices == np.repeat(np.arange(P.shape[0]), np.diff(P.indptr))):
            factor = sp.csr_array(sp.diags_array(np.sqrt(0.5 * P.diagonal()[rows])) @ self.maps[rows])
            plain = np.all(np.diff(factor.indptr) <= 1)
            weights = np.asarray((factor.multiply(factor)).sum(axis=0)).ravel()
            self.found.squares = _ridge(weights) if plain else 1.0 * Quadratic(factor=factor)
        else:
            matrix = 0.5 * (self.maps.T @ (P @ self.maps))
            self.found.squares = 1.0 * Quadratic(matrix=(matrix + matrix.T) / 2.0)
        return True

    def _unnested(self) -> bool:
        """Where t >= |a| for an epigraph a of a norm, pass the cost of t on to a."""
        first = self.program.cones.zero + self.program.cones.nonneg
        for length in self.program.cones.soc:
            others = self._others(first)
            if len(others) == 1:
                (a,) = others
                rows = [i for i in self._rows_of(a) if i != first]
                above = self._above(a, rows) if rows and not self.cost[a] else None
                if above is not None:
                    self.cost[a] = self.cost[above[0]] * above[1]
                    self.done[above[0]] = True
                    self.used[rows] = True
            first += length
        return True

    def _cones(self) -> bool:
        """Read the inequalities and the second-order cones as epigraphs."""
        images = sp.csr_array(-(self.A @ self.maps))
        images.eliminate_zeros()
        free = ~self.known & ~self.done
        others = sp.csr_array(-self.A.multiply(free[None, :]))
        others.eliminate_zeros()
        counts = np.diff(others.indptr)
        start = self.program.cones.zero
        end = start + self.program.cones.nonneg
        rows = np.arange(start, end)[~self.used[start:end]]
        heads, tails = self._second_order(end)
        alone = np.concatenate([rows, heads])
        if np.any(counts[alone] != 1) or np.any(counts[tails]) or np.any(np.diff(images.indptr)[heads]):
            return False
        tops, factors = others.indices[others.indptr[alone]], others.data[others.indptr[alone]]
        if np.any(factors <= 0.0) or np.any(self.cost[tops] < 0.0):
            return False
        pairs, norms = tops[: rows.size], tops[rows.size :]
        unseen = free & (self.cost != 0.0)
        unseen[tops] = False
        if unseen.any() or np.unique(norms).size < norms.size or np.intersect1d(pairs, norms).size:
            return False
        if heads.size:
            self._add_norms(images[tails], self.cost[norms] / factors[rows.size :])
        return self._add_pairs(images[rows], pairs, factors[: rows.size])

    def _second_order(self, first: int) -> tuple[Any, Any]:
        """The first row of each second-order cone, and all other rows of these cones."""
        lengths = np.array(self.program.cones.soc, dtype=np.int64)
        heads = first + np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)[: lengths.size]
        return heads, np.setdiff1d(np.arange(first, first + int(lengths.sum())), heads)

    def _add_norms(self, K: Any, costs: Array) -> None:
        sizes = np.array(self.program.cones.soc, dtype=np.int64) - 1
        long = np.repeat(sizes > 1, sizes)
        if not np.all(sizes > 1):
            self.found.absolute.append((sp.csr_array(K[~long]), costs[sizes == 1]))
        if long.any():
            self.found.norms.append((sp.csr_array(K[long]), sizes[sizes > 1], costs[sizes > 1]))

    def _add_pairs(self, images: Any, tops: Any, factors: Array) -> bool:
        """a >= k'x and a >= -k'x."""
        if not tops.size:
            return True
        K = sp.csr_array(sp.diags_array(-1.0 / factors) @ images)
        order = np.argsort(tops, kind="stable")
        ones, twos = order[::2], order[1::2]
        if tops.size % 2 or np.any(tops[ones] != tops[twos]) or np.unique(tops).size != ones.size:
            return False
        if (K[ones] + K[twos]).count_nonzero():
            return False
        self.found.absolute.append((sp.csr_array(K[ones]), self.cost[tops[ones]]))
        return True


def _is_signed_identity(K: Any) -> bool:
    plain = K.shape[0] == K.shape[1] == K.nnz and np.all(np.diff(K.indptr) == 1)
    return bool(plain and np.array_equal(K.indices, np.arange(K.nnz)) and np.all(np.abs(K.data) == 1.0))


def _ridge(weights: Array) -> Term:
    return float(weights[0]) * Ridge() if np.all(weights == weights[0]) else 1.0 * Ridge(weights=weights)


def _absolute(K: Any, costs: Array) -> list[Term]:
    """Absolute values of single weights as L1, those of linear maps as L1 after a map."""
    K.eliminate_zeros()
    counts = np.diff(K.indptr)
    found, single, several = [], counts == 1, counts > 1
    if single.any():
        part = K[single]
        weighted = costs[single] * np.abs(part.data)
        found.append(_weighted(np.bincount(part.indices, weighted, K.shape[1]).astype(float)))
    if several.any():
        term = _weighted(costs[several])
        found.append(compose(term, K[several]))
    return found


def _weighted(weights: Array) -> Term:
    """L1 with equal weights as a strength."""
    return float(weights[0]) * L1() if np.all(weights == weights[0]) else 1.0 * L1(weights=weights)


def _norms(K: Any, sizes: Any, costs: Array, d: int) -> list[Term]:
    """Norms of groups of weights as a group lasso, others as block norms after a map."""
    K.eliminate_zeros()
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    if np.all(np.diff(K.indptr) == 1):
        units, owner = np.abs(K.data[indptr[:-1]]), np.repeat(np.arange(len(sizes)), sizes)
        distinct = np.unique(owner * d + K.indices).size == K.nnz
        if distinct and np.all(np.abs(K.data) == units[owner]):
            return [1.0 * GroupLasso(Groups.from_csr(indptr, K.indices.astype(np.int64), d, weights=costs * units))]
    return [1.0 * compose(BlockNorms(indptr, costs), K)]
