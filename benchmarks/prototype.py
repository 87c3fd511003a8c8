"""Penalties given by a CVXPY expression alone, n = 2,000 and d = 200, logistic loss, at a relative gap of 1e-6.

Ours starts from a new ``FromExpression`` in each run: the time includes the compilation of the expression, the search
for known structure in its cone program, and the certificate. CVXPY solves the same problem from the same expression,
including its compilation; "gap" is then the error of its objective. Total variation plus L1 is recognised and goes to a
second-order solver. The other expressions have no known structure: their prox and the bound of their conjugate are
solves of the cone program.

``random_expressions`` solves 1,000 problems with random expressions as penalties, compositions of CVXPY atoms, and
compares each certificate with CVXPY's optimum. Problems whose optimum CVXPY cannot find accurately are counted apart.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from measure import Result, by_cvxpy, ours

import cvxstructreg as csr

N, D = 2_000, 200
EXPRESSIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "tv + 0.25 norm1": (lambda w: cp.tv(w) + 0.25 * cp.norm1(w), ">= 8 times faster than CVXPY"),
    "norm_inf": (lambda w: cp.norm_inf(w), ""),
    "sum_largest(|w|, 20)": (lambda w: cp.sum_largest(cp.abs(w), 20), ""),
    "norm1 with offset": (lambda w: cp.norm1(w - 0.05), ""),
}


def expressions() -> Iterator[Result]:
    """Each expression by ours and by CVXPY."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    truth = np.concatenate([np.repeat([0.3, -0.3, 0.15], 20), np.zeros(D - 60)])
    y = X @ truth + rng.logistic(size=N) > 0
    for name, (function, target) in EXPRESSIONS.items():

        def make(function: Callable[[Any], Any] = function) -> csr.Problem:
            return csr.Problem(csr.Linear(X), csr.Logistic(y) + 20.0 * csr.FromExpression(function))

        work = f"{name}, {N:,} x {D}"
        yield ours("prototype", work, make, "auto", 1e-6, target=target)
        yield from by_cvxpy("prototype", work, make, tol=1e-7)


def random_expressions(count: int = 1_000) -> Iterator[Result]:
    """How many random expressions are proved, refused, or have a certificate that the reference contradicts."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from test_random_expressions import check

    found: Counter[str] = Counter(wrong=0, refused=0)
    began = time.process_time()
    for seed in range(count):
        try:
            found[check(seed) or "without reference"] += 1
        except AssertionError:
            found["wrong"] += 1
        except (ValueError, TypeError):
            found["refused"] += 1
    seconds = time.process_time() - began
    outcome = ", ".join(f"{number} {status}" for status, number in sorted(found.items()))
    yield Result("random expressions", f"{count:,} problems: {outcome}", "auto", seconds, seconds, np.nan, "0 wrong")


SECTIONS = {"prototype": expressions, "random_expressions": random_expressions}
