"""Write docs/solvers.md: what the solvers declare, and all its problems solved. ``python docs/solver_table.py``"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cvxstructreg as csr
from cvxstructreg.solvers import registry
from cvxstructreg.solvers.solver import AS_GIVEN

PAGE = Path(__file__).parent / "solvers.md"
CERTIFIED = "## Every loss with every penalty, certified"
TOLERANCE = 1e-6
KINDS = {"duality_gap": "gap", "strong_convexity": "gap by strong convexity", "kkt": "conditions"}
N, D = 12, 4  # rows and features of the small problems that the solvers are asked about

X = np.random.default_rng(0).normal(size=(N, D))
GRAM = X @ X.T + np.eye(N)
LABELS = np.arange(N) % 2
CLASSES = np.arange(N) % 3
FEATURES = csr.Graph.from_edges([(0, 1), (1, 2), (2, 3)], n_nodes=D)
EXAMPLES = csr.Graph.from_edges([(i, i + 1) for i in range(N - 1)], n_nodes=N)
DISJOINT = csr.Groups([[0, 1], [2, 3]], n_features=D)
OVERLAPPING = csr.Groups([[0, 1, 2], [2, 3]], n_features=D)
WEIGHTED = csr.Groups([[0, 1, 2], [2, 3]], member_weights=[[1.0, 2.0, 0.5], [2.0, 1.0]])
ON_ROWS = csr.Groups([list(range(N // 2)), list(range(N // 2, N))], n_features=N)

LOSSES: dict[str, Any] = {
    "Logistic": lambda: csr.Logistic(LABELS),
    "Squared": lambda: csr.Squared(X[:, 0]),
    "Hinge": lambda: csr.Hinge(LABELS),
    "SquaredHinge": lambda: csr.SquaredHinge(LABELS),
    "Multinomial": lambda: csr.Multinomial(CLASSES),
    "MulticlassHinge": lambda: csr.MulticlassHinge(CLASSES),
    "Poisson": lambda: csr.Poisson(CLASSES),
    "Gamma": lambda: csr.Gamma(1.0 + CLASSES),
    "Tweedie": lambda: csr.Tweedie(CLASSES),
    "Huber": lambda: csr.Huber(X[:, 0]),
    "Absolute": lambda: csr.Absolute(X[:, 0]),
    "Quantile": lambda: csr.Quantile(X[:, 0]),
    "MultiTask": lambda: csr.MultiTask(X[:, :2]),
    "Cox": lambda: csr.Cox(CLASSES, event=LABELS),
}
LINEAR: dict[str, Any] = {
    "Ridge": lambda: csr.Ridge(),
    "Quadratic + Ridge": lambda: csr.Quadratic(matrix=np.eye(D)) + csr.Ridge(),
    "FeatureNetwork + Ridge": lambda: csr.FeatureNetwork(FEATURES) + csr.Ridge(),
    "Laplacian + Ridge": lambda: csr.Laplacian(FEATURES) + csr.Ridge(),
    "Laplacian on the scores + Ridge": lambda: csr.Laplacian(EXAMPLES).on_scores() + csr.Ridge(),
    "L1": lambda: csr.L1(),
    "L1 + Laplacian": lambda: csr.L1() + csr.Laplacian(FEATURES),
    "NonNegative + Ridge": lambda: csr.NonNegative() + csr.Ridge(),
    "Box + Laplacian": lambda: csr.Box(-1.0, 1.0) + csr.Laplacian(FEATURES),
    "GroupLasso, disjoint": lambda: csr.GroupLasso(DISJOINT),
    "GroupLasso, overlapping + L1": lambda: csr.GroupLasso(OVERLAPPING) + csr.L1(),
    "GroupLasso, tree": lambda: csr.GroupLasso(csr.TreeGroups.from_nested([0, [1], [2, 3]])),
    "GroupLasso, member weights": lambda: csr.GroupLasso(WEIGHTED),
    "GroupLasso, rows": lambda: csr.GroupLasso(csr.Groups.singletons(D)),
    "GroupLasso, each output": lambda: csr.GroupLasso(OVERLAPPING, across_outputs=False),
    "LatentGroupLasso": lambda: csr.LatentGroupLasso(OVERLAPPING),
    "FusedLasso": lambda: csr.FusedLasso(FEATURES),
    "FusedLasso + L1": lambda: csr.FusedLasso(FEATURES) + csr.L1(),
    "compose(L1, differences)": lambda: csr.compose(csr.L1(), csr.differences(D, order=2)),
    "compose(BlockNorms, differences)": lambda: csr.compose(csr.BlockNorms.of_sizes([2] * D), csr.differences((2, 2))),
    "BlockNorms": lambda: csr.BlockNorms.of_sizes([2, 2]),
    "TotalVariation": lambda: csr.TotalVariation((2, 2)),
    "TrendFilter": lambda: csr.TrendFilter(2),
    "HuberDifferences": lambda: csr.HuberDifferences(FEATURES),
    "HuberDifferences + L1": lambda: csr.HuberDifferences(FEATURES) + csr.L1(),
    "SLOPE": lambda: csr.SLOPE.bh(D),
    "SLOPE + Ridge": lambda: csr.SLOPE.bh(D) + csr.Ridge(),
    "NuclearNorm": lambda: csr.NuclearNorm(),
    "ExclusiveLasso": lambda: csr.ExclusiveLasso(DISJOINT),
    "HuberPenalty": lambda: csr.HuberPenalty(),
}
PAIRS: dict[str, Any] = {
    "Dissimilarity + Ridge": lambda: csr.Dissimilarity([(0, 1)]) + csr.Ridge(),
    "Dissimilarity with a dead zone + Ridge": lambda: csr.Dissimilarity([(0, 1)], margin=0.5) + csr.Ridge(),
}
KERNEL: dict[str, Any] = {
    "RKHSNorm": lambda: csr.RKHSNorm(),
    "RKHSNorm + Laplacian on the scores": lambda: csr.RKHSNorm() + csr.Laplacian(EXAMPLES).on_scores(),
    "RKHSNorm + Laplacian on the function": lambda: csr.RKHSNorm() + csr.Laplacian(EXAMPLES).on_function(),
    "RKHSNorm + L1": lambda: csr.RKHSNorm() + csr.L1(),
    "L1": lambda: csr.L1(),
    "GroupLasso, disjoint": lambda: csr.GroupLasso(ON_ROWS),
}
KERNEL_PAIRS: dict[str, Any] = {"RKHSNorm + Dissimilarity": lambda: csr.RKHSNorm() + csr.Dissimilarity([(0, 1)])}
NO_INTERCEPT = ("Cox",)


def solver_rows() -> list[str]:
    """One row for each solver: what it needs, and the coordinates it works in."""
    rows = ["| solver | needs | kernel models | note |", "|---|---|---|---|"]
    for solver in registry.solvers():
        needs = "; ".join(str(need) for need in solver.needs) or "nothing"
        kernels = "as given" if solver.coordinates == AS_GIVEN else "on a factor of gram, or gram as the data"
        if any(str(need) == "a Linear model" for need in solver.needs):
            kernels = "refused"
        notes = ["published method, for comparison"] if solver.baseline else []
        notes += [f"formerly `{name}`" for name in solver.aliases]
        rows.append(f"| `{solver.name}` | {needs} | {kernels} | {'; '.join(notes)} |")
    return rows


def problem(model: Any, loss: str, penalty: Any) -> csr.Problem:
    """The problem of a cell; ``model(intercept=...)`` makes the model."""
    return csr.Problem(model(intercept=loss not in NO_INTERCEPT), LOSSES[loss]() + penalty())


def accepting(problem: csr.Problem) -> str:
    """The solvers that accept a problem, in the order of ``auto``; CVXPY accepts all and is left out."""
    names = [solver.name for solver in registry.accepting(problem)][:-1]
    return ", ".join(f"`{name}`" for name in names) or "`cvxpy` only"


def certified(problem: csr.Problem) -> str:
    """The solver that ``auto`` takes, and how it proves the result: solve the problem to 1e-6."""
    solution = problem.solve(tol=TOLERANCE)
    if solution.status != "optimal" or solution.certificate.relative_gap > TOLERANCE:
        raise RuntimeError(f"not proved: {solution!r}\n{problem.describe()}")
    return f"`{solution.solver}` {KINDS[solution.certificate.kind]}"


def rows(model: Any, penalties: dict[str, Any], cell: Callable[[csr.Problem], str]) -> list[str]:
    """A table of penalties by losses."""
    lines = [f"| penalty | {' | '.join(LOSSES)} |", "|---|" + "---|" * len(LOSSES)]
    for name, penalty in penalties.items():
        cells = [cell(problem(model, loss, penalty)) for loss in LOSSES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


MODELS: dict[str, Any] = {
    "Linear models": (partial(csr.Linear, X), {**LINEAR, **PAIRS}),
    "Kernel models": (partial(csr.Kernel, GRAM, psd=True), {**KERNEL, **KERNEL_PAIRS}),
}


def page() -> str:
    """The page up to the certified tables, from the declarations alone."""
    lines = [
        "# Which solver solves what",
        "",
        "`python docs/solver_table.py` writes this page from the declarations of the solvers, and a test fails if the",
        "page is out of date. `problem.solve()` takes the first solver that accepts the problem.",
        "`csr.solvers.accepting(problem)` lists all that do, and `csr.solvers.refusals(problem)` says why others do",
        "not.",
        "",
        "## What each solver needs",
        "",
        *solver_rows(),
        "",
        "## Who accepts what",
        "",
        f"The solvers that accept each problem, in the order in which `auto` considers them ({N} rows, {D} features).",
        "`cvxpy` accepts every problem and comes last.",
        "",
    ]
    for title, (model, penalties) in MODELS.items():
        lines += [f"### {title}", "", *rows(model, penalties, accepting), ""]
    return "\n".join(lines)


def certified_part() -> str:
    """The tables of all problems, solved and certified."""
    lines = [
        CERTIFIED,
        "",
        f"The same problems, solved by `auto` to a relative gap of {TOLERANCE:g}: the solver that found the result,",
        "and the kind of its certificate. *gap* is a duality gap: a lower bound of the optimum from a feasible dual",
        "point. None of these problems goes to `cvxpy`. Others do: those with a term that no other solver handles,",
        "such as the penalty `csr.FromExpression(lambda w: cp.logistic(w)[0])`.",
        "",
    ]
    for title, (model, penalties) in MODELS.items():
        lines += [f"### {title}, certified", "", *rows(model, penalties, certified), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page() + certified_part(), encoding="utf-8")
