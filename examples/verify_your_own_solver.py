"""Measure how close your own solver gets to the optimum.

The solver is fifteen lines of subgradient descent for a linear SVM. The certificate bounds its distance from the
optimum. Run:

    python examples/verify_your_own_solver.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import cvxstructreg as csr

LAM = 0.5


def subgradient_descent(X: np.ndarray, y: np.ndarray, steps: int) -> tuple[np.ndarray, float]:
    """Minimise sum (1 - y (Xw + b))_+ + LAM ||w||^2, slowly; return the average of the second half of the iterates."""
    w, b = np.zeros(X.shape[1]), 0.0
    mean_w, mean_b = np.zeros_like(w), 0.0
    for step in range(1, steps + 1):
        active = y * (X @ w + b) < 1
        w = w - (2 * LAM * w - X[active].T @ y[active]) / (2 * LAM * (step + 100))
        b = b + np.sum(y[active]) / (len(y) * np.sqrt(step))
        if step > steps // 2:
            mean_w, mean_b = mean_w + w, mean_b + b
    half = steps - steps // 2
    return mean_w / half, mean_b / half


def main() -> None:
    """Print the certified gap of this solver for an increasing number of steps."""
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    problem = csr.Problem(csr.Linear(X), csr.Hinge(data.target) + LAM * csr.Ridge())
    print(problem.describe(), "\n")
    for steps in (10, 100, 1000, 10_000):
        w, b = subgradient_descent(X, np.where(data.target == 1, 1.0, -1.0), steps)
        print(f"{steps:>6} steps: objective {problem.value(w, b):.6f}, {csr.certify(problem, w, b)}")
    print("\n", problem.solve())


if __name__ == "__main__":
    main()
