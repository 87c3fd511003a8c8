"""The two group lassos with overlapping groups, side by side.

The direct norm removes whole groups; the latent norm selects whole groups. The difference is easy to see if the true
support is a union of two overlapping groups. Run:

    python examples/two_overlap_norms.py
"""

from __future__ import annotations

import numpy as np

import cvxstructreg as csr


def main() -> None:
    """Fit both penalties at a few strengths and print which weights are nonzero."""
    rng = np.random.default_rng(0)
    groups = csr.Groups([[0, 1, 2], [2, 3, 4], [4, 5, 6], [6, 7, 8], [8, 9, 0]], n_features=10)
    truth = np.array([0, 0, 1.5, -1.0, 2.0, 1.0, -1.5, 0, 0, 0])  # support: the union of the second and third groups
    X = rng.normal(size=(80, 10))
    y = X @ truth + rng.normal(size=80)
    print(f"{'truth':>20}  " + "".join("#" if weight else "." for weight in truth))
    for penalty in (csr.GroupLasso(groups), csr.LatentGroupLasso(groups)):
        for strength in (5.0, 20.0, 60.0):
            solution = csr.Problem(csr.Linear(X), csr.Squared(y) + strength * penalty).solve()
            kept = "".join("#" if abs(weight) > 1e-4 else "." for weight in solution.coef)
            gap = solution.certificate.relative_gap
            print(f"{type(penalty).__name__:>17} {strength:>2g}  {kept}  certified gap {gap:.0e}")


if __name__ == "__main__":
    main()
