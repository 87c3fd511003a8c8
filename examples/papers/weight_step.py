"""The w-step of the ADMM of Yogatama and Smith (2014), by Newton steps whose systems have one row for each document.

    minimize  loss(Xw + b) + lam_1 |w|_1 + 1/2 sum_j ridge_j w_j^2 - <pull, w>

Given theta = -loss'(scores), the weights are w_j = soft(pull_j + x_j'theta, lam_1) / ridge_j. A Newton step linearises
theta in the scores and solves for them by conjugate gradients. The matrix is I + K with K = H^1/2 X D^-1 X' H^1/2 over
the nonzero words and the intercept. The preconditioner keeps the most frequent words in full and the diagonal of the
others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.linalg import cho_factor, cho_solve

#: The relative change of w that ends the Newton steps, their largest number, the relative residual of their systems,
#: and the most steps of conjugate gradients.
W_CHANGE, NEWTON_STEPS, RESIDUAL, MOST_CG = 1e-2, 30, 0.03, 60
#: The error of the scores that is small enough in any case, relative to their norm.
ACCURACY = 1e-4
#: The number of words in the preconditioner, and the number of CG steps above which it is computed again.
FREQUENT, TOO_MANY = 64, 10
#: The intercept moves with this ridge around its last value, a fraction of the sum of the second derivatives.
OF_INTERCEPT = 1e-3
#: The part of the entries of X above which products with the active words go by rows.
MANY = 0.5

Point = tuple[Any, float]


def entries(X: Any) -> tuple[Any, Any, Any]:
    """The entries of a sparse matrix, in as few bytes as they need; counts are exact in single precision."""
    exact, short = bool(np.all(X.data.astype(np.float32) == X.data)), max(X.shape) < 2**16
    data = X.data.astype(np.float32 if exact else np.float64)
    return data, X.indices.astype(np.uint16 if short else np.uint32), X.indptr.astype(np.int64)


@njit(cache=True, inline="always")
def product(data: Any, places: Any, begin: int, end: int, given: Any) -> float:
    """The product of a row or column with a vector. Four sums at a time are much faster here than gathers."""
    one, two, three, four, p = 0.0, 0.0, 0.0, 0.0, begin
    while p + 3 < end:
        one += data[p] * given[places[p]]
        two += data[p + 1] * given[places[p + 1]]
        three += data[p + 2] * given[places[p + 2]]
        four += data[p + 3] * given[places[p + 3]]
        p += 4
    while p < end:
        one += data[p] * given[places[p]]
        p += 1
    return one + two + (three + four)


@njit(cache=True, error_model="numpy")
def add_slopes(data: Any, columns: Any, indptr: Any, theta: Any, out: Any) -> None:
    """out += X'theta, by the rows of X: most columns have one or two entries, which makes loops over them slow."""
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            out[columns[p]] += data[p] * theta[i]


@njit(cache=True, error_model="numpy")
def shrink(ridge: Any, lam1: float, w: Any) -> None:
    """w_j = soft(w_j, lam1) / ridge_j, and 0 for words without ridge."""
    for j in range(len(w)):
        size = abs(w[j]) - lam1
        if size > 0.0 and ridge[j] > 0.0:
            w[j] = size / ridge[j] if w[j] > 0.0 else -size / ridge[j]
        else:
            w[j] = 0.0


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def add_scores(data: Any, rows: Any, indptr: Any, w: Any, out: Any) -> None:
    """out += Xw."""
    for j in range(len(indptr) - 1):
        if w[j] != 0.0:
            for p in range(indptr[j], indptr[j + 1]):
                out[rows[p]] += w[j] * data[p]


@njit(cache=True, error_model="numpy")
def add_product(data: Any, rows: Any, indptr: Any, active: Any, ridge: Any, given: Any, out: Any) -> None:
    """out += X_A D_A^-1 X_A' given, by columns: for few active words."""
    for j in active:
        total = product(data, rows, indptr[j], indptr[j + 1], given) / ridge[j]
        for p in range(indptr[j], indptr[j + 1]):
            out[rows[p]] += total * data[p]


@njit(cache=True, error_model="numpy")
def add_product_by_rows(data: Any, columns: Any, indptr: Any, inverse: Any, given: Any, out: Any) -> None:
    """out += X D^-1 X' given, by rows: for many active words. The inverse of the ridge is 0 for the others."""
    slopes = np.zeros(len(inverse))
    for i in range(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            slopes[columns[p]] += data[p] * given[i]
    slopes *= inverse
    for i in range(len(indptr) - 1):
        out[i] += product(data, columns, indptr[i], indptr[i + 1], slopes)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def add_diagonal(data: Any, rows: Any, indptr: Any, active: Any, ridge: Any, out: Any) -> None:
    """out += diag(X_A D_A^-1 X_A')."""
    for j in active:
        for p in range(indptr[j], indptr[j + 1]):
            out[rows[p]] += data[p] * data[p] / ridge[j]


class Preconditioner:
    """The inverse of E + UU': E is diagonal, and U has the most frequent active words and the intercept."""

    def __init__(self, step: DualStep, root: Any, active: Any, own: Any, of_intercept: float) -> None:
        dense = step.is_frequent[active]
        diagonal = own.copy()
        add_diagonal(*step.columns, active[~dense], step.ridge, diagonal)
        self.inverse = 1.0 / (1.0 + root**2 * diagonal)
        kept = active[dense]
        U = np.empty((root.size, kept.size + 1))
        U[:, :-1] = step.frequent[:, step.place[kept]] / np.sqrt(step.ridge[kept])
        U[:, -1] = 1.0 / np.sqrt(of_intercept)
        U *= root[:, None]
        self.U = U
        scaled = U * np.sqrt(self.inverse)[:, None]
        small = scaled.T @ scaled
        small[np.diag_indices_from(small)] += 1.0 + 1e-10 * np.diagonal(small)  # for words that nearly agree
        self.factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)

    def __call__(self, r: Any) -> Any:
        """The inverse times r, by the formula of Woodbury."""
        scaled = self.inverse * r
        return scaled - self.inverse * (self.U @ cho_solve(self.factor, self.U.T @ scaled, check_finite=False))


class DualStep:
    """argmin over (w, b) of loss(Xw + b) + lam_1 |w|_1 + 1/2 sum_j ridge_j w_j^2 - <pull, w>."""

    def __init__(self, X: Any, y: Any, ridge: Any, lam1: float) -> None:
        X = sp.csc_array(X)
        self.columns, self.rows = entries(X), entries(sp.csr_array(X))
        self.sign, self.ridge, self.lam1 = np.where(y == 1, 1.0, -1.0), np.asarray(ridge, float), lam1
        d, number = X.shape[1], np.diff(X.indptr)
        chosen = np.sort(np.argsort(-number, kind="stable")[: min(FREQUENT, d)])
        self.frequent = np.asarray(X[:, chosen].toarray())
        self.is_frequent, self.place = np.zeros(d, dtype=bool), np.zeros(d, dtype=np.int64)
        self.is_frequent[chosen], self.place[chosen] = True, np.arange(chosen.size)
        self.number, self.single = number, number == 1  # words of one document: their part of K is diagonal
        self.others = np.flatnonzero(number > 1)
        self.rows_of_others = entries(sp.csr_array(X[:, self.others]))
        self.preconditioner: Any = None
        self.rescue: Any = None  # another way to solve the step, if the Newton steps do not end
        self.w_change, self.residual, self.accuracy = W_CHANGE, RESIDUAL, ACCURACY
        self.last: Any = None
        self.theta: Any = None  # of the last Newton step, linearised

    def scores(self, w: Any, b: float) -> Any:
        """Xw + b."""
        out = np.full(self.sign.size, float(b))
        add_scores(*self.columns, w, out)
        return out

    def shrunk(self, theta: Any, pull: Any) -> Any:
        """The weights that belong to theta."""
        w = np.array(pull, dtype=float)
        add_slopes(*self.rows, theta, w)
        shrink(self.ridge, self.lam1, w)
        return w

    def slopes(self, theta: Any) -> Any:
        """X'theta."""
        out = np.zeros(self.ridge.size)
        add_slopes(*self.rows, theta, out)
        return out

    def __call__(self, w: Any, b: float, pull: Any) -> Point:
        """Take Newton steps in the scores, with a line search on the dual objective, until w hardly changes."""
        scores, step, t, best, strength = self.start(w, b), None, 1.0, -np.inf, None
        given = w, b
        for _ in range(NEWTON_STEPS):
            wrong = 1.0 / (1.0 + np.exp(np.clip(self.sign * scores, -500.0, 500.0)))
            theta, h = self.sign * wrong, np.maximum(wrong * (1.0 - wrong), 1e-10)
            strength = strength or max(OF_INTERCEPT * float(h.sum()), 1e-8)
            now, total = self.shrunk(theta, pull), float(theta.sum())
            dual = np.logaddexp(0.0, -self.sign * scores).sum() + theta @ scores - 0.5 * (self.ridge * now) @ now
            if dual - total * (b + 0.5 * total / strength) < best - 1e-6 * abs(best) and t > 1e-3:
                scores, t = scores - 0.5 * t * step, 0.5 * t
                continue
            root = np.sqrt(h)
            right = self.scores(now, b + total / strength) - scores
            small = self.accuracy * float(np.linalg.norm(root * scores))
            z, rest = self.solved(root * right, root, now != 0.0, strength, small)
            ahead = theta - root * z
            before, w, b = w, self.shrunk(ahead, pull), b + float(ahead.sum()) / strength
            step, t, best = right - rest, 1.0, dual - total * (b + 0.5 * total / strength)
            scores = scores + step
            if np.linalg.norm(w - before) <= self.w_change * np.linalg.norm(w) + 1e-12:
                break
        else:
            if self.rescue is not None:
                self.last = None
                return self.rescue(*given, pull)
        self.theta = ahead
        self.last = w, scores, None if self.last is None else self.last[1]
        return w, b

    def start(self, w: Any, b: float) -> Any:
        """The scores of w; if the last two calls led to w, as much further as in the last one."""
        if self.last is None or self.last[0] is not w:
            self.last = None
            return self.scores(w, b)
        return self.last[1] if self.last[2] is None else 2.0 * self.last[1] - self.last[2]

    def solved(self, right: Any, root: Any, nonzero: Any, strength: float, small: float) -> Any:
        """z with (I + K) z = right, by preconditioned conjugate gradients, and H^-1/2 K z."""
        own, active = np.zeros(root.size), np.flatnonzero(nonzero & ~self.single)
        add_diagonal(*self.columns, np.flatnonzero(nonzero & self.single), self.ridge, own)
        if self.preconditioner is None:
            self.preconditioner = Preconditioner(self, root, active, own, strength)
        inverse = None
        if self.number[active].sum() > MANY * self.rows_of_others[0].size:
            inverse = np.where(nonzero, 1.0 / np.where(nonzero, self.ridge, 1.0), 0.0)[self.others]
        z, r, rest = np.zeros(right.size), right.copy(), np.zeros(right.size)
        energy, p, number = 0.0, np.zeros(right.size), 0
        # the residual is the error of the scores (times root), which is small compared with their change
        while number < MOST_CG and float(r @ r) > max(self.residual**2 * float(z @ z), small**2):
            q = self.preconditioner(r)
            before, energy = energy, float(r @ q)
            p = q + (energy / before) * p if number else q
            given = root * p
            out = own * given + given.sum() / strength
            if inverse is None:
                add_product(*self.columns, active, self.ridge, given, out)
            else:
                add_product_by_rows(*self.rows_of_others, inverse, given, out)
            Ap = p + root * out
            bend = float(p @ Ap)
            if not bend > 0.0:
                break
            length = energy / bend
            z += length * p
            r -= length * Ap
            rest += length * out
            number += 1
        if number > TOO_MANY:
            self.preconditioner = None
        return z, rest
