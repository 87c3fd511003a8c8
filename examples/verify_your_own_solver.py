"""Verify your own solver, and find out what is wrong with it.

The solver is a proximal gradient method for a logistic lasso, in ten lines. It yields its iterates, so that the report
has a history. A second version has a mistake that the diagnosis finds. Run:

    python examples/verify_your_own_solver.py
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import cvxstructreg as csr

LAM = 2.0
DATA = load_breast_cancer()
X, LABEL = StandardScaler().fit_transform(DATA.data), np.where(DATA.target == 1, 1.0, -1.0)


def proximal_gradient(problem: csr.Problem, strength: float = LAM) -> Iterator[tuple[np.ndarray, float]]:
    """Minimise sum_i log(1 + exp(-y_i (x_i'w + b))) + strength ||w||_1, and yield (w, b) after each step."""
    Z = np.column_stack([X, np.ones(len(X))])
    w, ahead, momentum = np.zeros(Z.shape[1]), np.zeros(Z.shape[1]), 1.0
    step = 4.0 / np.linalg.norm(Z, 2) ** 2
    for _ in range(3000):
        v = ahead + step * Z.T @ (LABEL / (1.0 + np.exp(LABEL * (Z @ ahead))))
        moved = np.append(np.sign(v[:-1]) * np.maximum(np.abs(v[:-1]) - step * strength, 0.0), v[-1])
        faster = 0.5 + np.sqrt(0.25 + momentum**2)
        ahead, w, momentum = moved + (momentum - 1.0) / faster * (moved - w), moved, faster
        yield w[:-1], w[-1]


def twice_the_threshold(problem: csr.Problem) -> tuple[np.ndarray, float]:
    """The same method with a mistake: the threshold is doubled."""
    return list(proximal_gradient(problem, 2.0 * LAM))[-1]


def main() -> None:
    """Print the report and the diagnosis."""
    problem = csr.Problem(csr.Linear(X), csr.Logistic(DATA.target) + LAM * csr.L1())
    print(problem.describe(), "\n")
    strengths = csr.conventions.to_sklearn_logistic(l1=LAM, ridge=0.0)
    peer = LogisticRegression(solver="liblinear", tol=1e-10, max_iter=10_000, **strengths).fit(X, DATA.target)
    report = csr.verify(problem, {"mine": proximal_gradient, "mistaken": twice_the_threshold, "liblinear": peer})
    print(report, "\n")
    for name in ("mistaken", "liblinear"):
        print(f"{name}: {csr.diagnose(problem, report.solutions[name])}\n")


if __name__ == "__main__":
    main()
