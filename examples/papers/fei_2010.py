"""Fei, Quanz and Huan (2010), Table 1 and Figure 1: feature selection with networks of features.

    python examples/papers/fei_2010.py --write-docs

The script compares lasso, elastic net, Laplacian elastic net and feature network on a pair of newsgroups with 100 + 100
documents, and on diabetes gene expression with pathways. It reports the selected features, their total distance or
pathways, sensitivity, specificity and accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from cells import computed
from fei_data import Task, task_of
from reported import FEI_PATHWAYS_OF_ALL_RUNS, FEI_TABLE_1
from reporting import COMPARED, Report, compared, options, standard_error
from sklearn.model_selection import StratifiedKFold

import cvxstructreg as csr
from cvxstructreg.metrics import binary_report, corrected_resampled_t_test, feature_separation, n_selected_groups

PROTOCOL = (
    "3 x 10 stratified folds. Strengths are chosen by accuracy in 10 stratified folds of each training part; ties go "
    "to the sparsest model. The L1 strength is 0.3, 0.2, 0.1 or 0.05 of lambda_max; the quadratic strength is 1 or 10. "
    "The feature network has alpha = 100, 10, 1 or 0.1 and beta = alpha / 100.",
    "Newsgroups: comp.os.ms-windows.misc against comp.sys.ibm.pc.hardware, 100 documents of each drawn at random, new "
    "ones in each of the 3 replicates. Features are the presence of the 623 words that occur in at least 25 of the "
    "1,967 documents (headers, footers and quotes removed, no stop words). Network: 25 nearest neighbours by cosine, "
    "at least 0.10, from all documents without their labels.",
    "Diabetes: 34 samples, genes standardised on the training part, genes of the same pathway linked. Pathways: KEGG, "
    "with p < 0.1 in a global test (the permutation form of the test of Goeman and others, 2,000 permutations), taken "
    "in the order of p if they share no gene with one taken before, at most 13. As in the paper, this test sees "
    "all samples, also those that a fold tests, so the accuracies are too good.",
    "F: mean number of selected features. P: mean number of pathways with a selected gene. D: sum of the numbers of "
    "steps between all pairs of selected features in the network, as the paper defines it; the mean over the runs. For "
    "the feature network every feature counts as selected.",
    "SEN, SPE and ACC are means over the 30 runs; the standard error is that of the 30 values. It ignores that "
    "the runs share documents. p: corrected resampled t-test of the accuracy against the Laplacian elastic net.",
    "Figure 1: 10 folds, one replicate; strengths chosen in 3 folds.",
)
DIFFERENCES = (
    "The paper has 610 words and 1,942 documents; our copy of the pair has 1,967 documents and 623 such words.",
    "The paper does not give its grid.",
    "The paper's diabetes data have 22,280 genes; our copy has 15,056 gene symbols, and newer KEGG pathways.",
    "Figure 1: the paper has 30 runs at each size; we have 10. It does not list the values.",
)
PARTS, STRENGTHS, ALPHAS = (0.3, 0.2, 0.1, 0.05), (10.0, 1.0), (100.0, 10.0, 1.0, 0.1)
#: Alphas of the feature network without tuning.
FIXED = (0.01, 1.0, 100.0, 10000.0)
KEYS = ("F", "structure", "SEN", "SPE", "ACC")


@dataclass(frozen=True)
class Method:
    """A penalty as a function of the network, and its strengths."""

    quadratic: Callable[[csr.Graph], Any] | None
    sparse: bool = True

    def grid(self, quick: bool) -> list[tuple[float, float]]:
        """The grid points, sparsest first within each quadratic strength."""
        if not self.sparse:
            return [(0.0, alpha) for alpha in (ALPHAS[2:3] if quick else ALPHAS)]
        parts = PARTS[1:2] if quick else PARTS
        strengths = (STRENGTHS[-1:] if quick else STRENGTHS) if self.quadratic else (0.0,)
        return [(part, strength) for strength in strengths for part in parts]


METHODS = {
    "lasso": Method(None),
    "elastic net": Method(lambda graph: 0.5 * csr.Ridge()),
    "Laplacian elastic net": Method(lambda graph: 0.5 * csr.Laplacian(graph.symmetrized(), normalized=True)),
    "feature network": Method(None, sparse=False),
}


@cache
def quadratic_of(name: str, task: Task) -> Any:
    """The quadratic penalty of a method, built once."""
    make = METHODS[name].quadratic
    return make and make(task.graph)


@dataclass(frozen=True)
class Weights:
    """The weights of a fitted model."""

    coef: Any
    intercept: float


@cache
def inverse_of(task: Task) -> Any:
    """The inverse of M = (I - P)'(I - P) + 0.01 I, the matrix of the feature network with alpha = 1."""
    away = np.eye(task.graph.n_nodes) - task.graph.transition().toarray()
    return np.linalg.inv(away.T @ away + 0.01 * np.eye(len(away)))


def network_path(task: Task, X: Any, rows: Any, grid: list[Any], intercept: bool = True) -> list[Weights]:
    """The feature network for each alpha, by the kernel X M^-1 X' of its penalty alpha w'Mw: few rows, many weights."""
    half = np.asarray(X[rows] @ inverse_of(task))
    model = csr.Kernel(np.asarray(X[rows] @ half.T), intercept=intercept)
    loss, found = csr.Logistic(task.y[rows]), []
    for _, alpha in grid:
        solution = csr.Problem(model, loss + alpha * csr.RKHSNorm()).solve(tol=1e-3)
        found.append(Weights(half.T @ solution.coef, solution.intercept))
    return found


def path(name: str, task: Task, X: Any, rows: Any, grid: list[tuple[float, float]]) -> list[Any]:
    """The models of all grid points on some rows, each started at the one before."""
    if not METHODS[name].sparse:
        return network_path(task, X, rows, grid)
    y, quadratic = task.y[rows], quadratic_of(name, task)
    largest = float(np.abs(X[rows].T @ (y - y.mean())).max())
    model, loss, found = csr.Linear(X[rows]), csr.Logistic(y), []
    for part, strength in grid:
        objective = loss + part * largest * csr.L1()
        objective = objective + strength * quadratic if quadratic is not None else objective
        start = found[-1] if found and part != grid[0][0] else None
        found.append(csr.Problem(model, objective).solve(tol=1e-3, warm_start=start))
    return found


def predictions(solution: Any, X: Any) -> Any:
    """Predicted classes, 0 or 1."""
    return (np.asarray(X @ solution.coef) + solution.intercept > 0).astype(int)


def chosen(name: str, task: Task, X: Any, rows: Any, grid: list[Any], folds: int, seed: int) -> tuple[float, float]:
    """The grid point with the best cross-validated accuracy; ties go to the fewest features."""
    if len(grid) == 1:
        return grid[0]
    right, count = np.zeros(len(grid)), np.zeros(len(grid))
    for training, held in StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, task.y[rows]):
        for number, solution in enumerate(path(name, task, X, rows[training], grid)):
            right[number] += np.sum(predictions(solution, X[rows[held]]) == task.y[rows[held]])
            count[number] += np.count_nonzero(solution.coef)
    return grid[max(range(len(grid)), key=lambda number: (right[number], -count[number]))]


def runs(task_name: str, method: str, repeat: int, size: int, inner: int, data_home: str | None, quick: bool) -> Any:
    """The ten outer folds of one replicate: measurements, chosen strengths and selected features."""
    task = task_of(task_name, size, repeat, data_home, quick)
    grid, found = METHODS[method].grid(quick), []
    outer = StratifiedKFold(3 if quick else 10, shuffle=True, random_state=repeat)
    for training, test in outer.split(np.zeros(len(task.y)), task.y):
        X = task.scaled(training)
        point = chosen(method, task, X, training, grid, 2 if quick else inner, repeat)
        solution = path(method, task, X, training, [point])[0]
        selected = np.flatnonzero(solution.coef)
        report = binary_report(task.y[test], predictions(solution, X[test]))
        values = (report.sensitivity, report.specificity, report.accuracy)
        measured = [len(selected), structure(task, selected), *(100.0 * value for value in values)]
        found.append(dict(zip(KEYS, measured, strict=True)) | {"point": point, "selected": selected.tolist()})
    return found


def variants(repeat: int, data_home: str | None, quick: bool) -> Any:
    """SEN, SPE and ACC of the feature network with fixed strengths, with and without an intercept, in ten folds."""
    task = task_of("newsgroups", 60 if quick else 200, repeat, data_home, quick)
    found: dict[str, list[list[float]]] = {}
    for training, test in StratifiedKFold(10, shuffle=True, random_state=repeat).split(np.zeros(len(task.y)), task.y):
        for intercept in (True, False):
            models = network_path(task, task.X, training, [(0.0, alpha) for alpha in FIXED], intercept)
            for alpha, model in zip(FIXED, models, strict=True):
                report = binary_report(task.y[test], predictions(model, task.X[test]))
                values = [report.sensitivity, report.specificity, report.accuracy]
                key = f"alpha {alpha:g}{'' if intercept else ', no intercept'}"
                found.setdefault(key, []).append([100.0 * value for value in values])
    return found


def variants_table(report: Report, given: Any) -> list[str]:
    """A search for the paper's defeat of the feature network, and what it found."""
    base = {"data_home": given.data_home, "quick": given.quick}
    found = computed(variants, [base | {"repeat": repeat} for repeat in range(1 if given.quick else 3)], given)
    rows = []
    if not given.quick:
        rows.append(["paper", *(100.0 * value for value in FEI_TABLE_1["newsgroups"]["feature network"][2:])])
    for key in found[0]:
        rows.append([key, *(float(value) for value in np.mean([run for each in found for run in each[key]], axis=0))])
    report.add("newsgroups: the feature network with fixed strengths", ["", *KEYS[2:]], rows)
    if given.quick:
        return []
    usual = [row[3] for row in rows[1:] if f"{max(FIXED):g}" not in row[0]]
    strong = next(row for row in rows if row[0] == f"alpha {max(FIXED):g}")
    return [
        f"The feature network with fixed alpha up to {sorted(FIXED)[-2]:g} has {min(usual):.1f} to {max(usual):.1f} %; "
        f"with alpha {max(FIXED):g}, {strong[3]:.1f} % and sensitivity {strong[1]:.1f} % (paper {rows[0][3]:.0f} and "
        f"{rows[0][1]:.0f} %). A penalty that is much too strong would explain the paper's row; we cannot know."
    ]


def structure(task: Task, selected: Any) -> float:
    """The number of selected pathways, or the total distance of the selected features."""
    if task.groups is not None:
        return float(n_selected_groups(np.isin(np.arange(task.X.shape[1]), selected).astype(float), task.groups))
    apart = feature_separation(selected, task.graph.symmetrized())
    return 0.0 if apart.n_selected < 2 else float(apart.mean * (apart.n_pairs - apart.n_unreachable))


def table_of(report: Report, task_name: str, given: Any) -> list[str]:
    """Evaluate all methods on a task and add its tables to the report; returns what repeated."""
    repeats, size = (1, 60) if given.quick else (3, 200)
    base = {"task_name": task_name, "size": size, "inner": 10, "data_home": given.data_home, "quick": given.quick}
    cells = [base | {"method": method, "repeat": repeat} for method in METHODS for repeat in range(repeats)]
    results = computed(runs, cells, given)
    found = {name: list(chain(*results[n * repeats : (n + 1) * repeats])) for n, name in enumerate(METHODS)}
    task = task_of(task_name, size, 0, given.data_home, given.quick)
    second = "D" if task.groups is None else "P"
    ours = [run["ACC"] for run in found["Laplacian elastic net"]]
    rows, tests = [], []
    for name, each in found.items():
        paper = (None,) * 5 if given.quick else FEI_TABLE_1[task_name][name]
        for column, key in enumerate(KEYS):
            values = [float(run[key]) for run in each]
            scale = 1.0 if column < 2 or paper[column] is None else 100.0
            theirs = None if paper[column] is None else scale * float(paper[column])
            label = second if key == "structure" else key
            rows.append(
                [name if column == 0 else "", label, *compared(theirs, float(np.mean(values)), standard_error(values))]
            )
        test = corrected_resampled_t_test(ours, [run["ACC"] for run in each], 9, 1)
        tests.append(
            [
                name,
                float(np.mean([run["ACC"] for run in each])),
                "-" if name == "Laplacian elastic net" else f"{test.p_value:.2f}",
            ]
        )
    title = "made data" if given.quick else task_name
    report.add(f"Table 1, {title}", ["", "", *COMPARED], rows)
    report.add(f"{title}: accuracy against the Laplacian elastic net", ["", "ACC", "p"], tests)
    always(report, title, task, found, given.quick)
    points = {name: counted([tuple(run["point"]) for run in each]) for name, each in found.items()}
    report.add(
        f"{title}: chosen strengths",
        ["", "fraction of lambda_max, quadratic strength: runs"],
        [[n, c] for n, c in points.items()],
    )
    return [] if given.quick else table_findings(task_name, found, report)


def table_findings(task_name: str, found: dict[str, Any], report: Report) -> list[str]:
    """What repeated of Table 1. The paper: the feature network is the worst method, the Laplacian net the sparsest."""
    ours = {name: float(np.mean([run["ACC"] for run in each])) for name, each in found.items()}
    errors = {name: standard_error([run["ACC"] for run in each]) or 0.0 for name, each in found.items()}
    paper = {name: 100.0 * FEI_TABLE_1[task_name][name][-1] for name in found}
    each = [f"{name} {ours[name]:.1f} ({paper[name]:.0f}, {ours[name] - paper[name]:+.1f})" for name in found]
    near = [name for name in found if abs(ours[name] - paper[name]) <= 2.0 * errors[name]]
    lines = [
        f"{task_name}: accuracy in percent, ours (paper, difference): {'; '.join(each)}.",
        f"{task_name}: within two standard errors of the paper: {', '.join(near) or 'none'}.",
    ]
    order, theirs = sorted(ours, key=ours.__getitem__), sorted(paper, key=paper.__getitem__)
    lines.append(f"{task_name}: from worst to best: {', '.join(order)} (paper: {', '.join(theirs)}).")
    size = {name: float(np.mean([run["F"] for run in runs])) for name, runs in found.items()}
    two = ("Laplacian elastic net", "elastic net")
    weak = sum(run["point"][0] == min(PARTS) for run in found[two[0]])
    lines.append(
        f"{task_name}: selected features: {', '.join(f'{name} {size[name]:.0f}' for name in two)} (paper: "
        f"{', '.join(f'{FEI_TABLE_1[task_name][name][0]}' for name in two)}). The {two[0]} has the weakest L1 strength "
        f"of the grid in {weak} of {len(found[two[0]])} runs."
    )
    if task_name == "newsgroups":
        good = order[0] == theirs[0] and len(near) == len(found)
        text = f"feature network {ours['feature network']:.1f} % (paper {paper['feature network']:.0f}), rank "
        text += f"{len(order) - order.index('feature network')} of {len(order)} (paper {len(theirs)}); within two "
        text += f"standard errors of the paper: {', '.join(near) or 'none'}"
        report.state("Table 1", f"{'repeated' if good else 'not repeated (numbers)'}: {text}")
    return lines


def always(report: Report, title: str, task: Task, found: dict[str, Any], quick: bool) -> None:
    """The features that are selected in all runs, and their pathways (section 4.3 of the paper)."""
    rows = []
    for name in FEI_PATHWAYS_OF_ALL_RUNS:
        common = sorted(set.intersection(*(set(run["selected"]) for run in found[name])))
        words = ", ".join(task.names[j] for j in common[:8]) or "-"
        row: list[Any] = [name, len(common), words]
        if task.groups is not None:
            paper = None if quick else FEI_PATHWAYS_OF_ALL_RUNS[name]
            row += [paper, int(structure(task, np.array(common, dtype=int)))]
        rows.append(row)
    extra = [] if task.groups is None else ["their pathways, paper", "ours"]
    report.add(f"{title}: features selected in all runs", ["", "features", "the first of them", *extra], rows)


def counted(values: list[Any]) -> str:
    """The number of occurrences of each value, most frequent first."""
    order = sorted(set(values), key=lambda value: (-values.count(value), value))
    return "; ".join(f"{value[0]:g}, {value[1]:g}: {values.count(value)}" for value in order)


def sample_sizes(report: Report, given: Any, lines: list[str]) -> tuple[list[int], dict[str, list[float]]]:
    """Figure 1: accuracy by number of documents."""
    sizes = [40] if given.quick else [100, 400, 600, 800, 1000]
    base = {"task_name": "newsgroups", "inner": 3, "data_home": given.data_home, "quick": given.quick, "repeat": 0}
    cells = [base | {"method": method, "size": size} for size in sizes for method in METHODS]
    found = iter(computed(runs, cells, given))
    curves: dict[str, list[float]] = {method: [] for method in METHODS}
    errors: dict[str, list[Any]] = {method: [] for method in METHODS}
    for _ in sizes:
        for method in METHODS:
            values = [run["ACC"] for run in next(found)]
            curves[method].append(float(np.mean(values)))
            errors[method].append(standard_error(values))
    rows = []
    for method, values in curves.items():
        rows += [[method, *values], ["standard error", *errors[method]]]
    report.add("Figure 1", ["documents", *sizes], rows)
    if not given.quick:
        others = [max(values[k] for name, values in curves.items() if name != "feature network") for k in range(5)]
        ahead = [curves["feature network"][k] - others[k] for k in range(5)]
        text = ", ".join(f"{value:+.1f}" for value in ahead)
        state = "repeated" if max(ahead) < 0.0 else "not repeated (numbers)"
        numbers = ", ".join(f"{size:,}" for size in sizes)
        text = f"with {numbers} documents the feature network is {text} points from the best other method"
        report.state("Figure 1", f"{state}: {text} (paper: behind at every size)")
        lines.append(f"Figure 1: {text} (paper: behind at every size).")
    return sizes, curves


def main() -> None:
    """Run both tables and the curve."""
    given = options(__doc__, ("newsgroups", "diabetes", "sizes"))
    report = Report("Fei, Quanz and Huan 2010, Table 1 and Figure 1", PROTOCOL, DIFFERENCES, given.quick)
    lines: list[str] = []
    for task_name in given.parts:
        if task_name == "newsgroups" or (task_name == "diabetes" and not given.quick):
            lines += table_of(report, task_name, given)
    if "newsgroups" in given.parts:
        lines += variants_table(report, given)
    curves = sample_sizes(report, given, lines) if "sizes" in given.parts else None
    if not given.quick:
        report.found(lines)
    report.finish(given, (lambda figure: draw(figure, *curves)) if curves else None, "fei_2010")


def draw(figure: Any, sizes: list[int], curves: dict[str, list[float]]) -> None:
    """Draw the curves of Figure 1."""
    axes = figure.subplots()
    for name, values in curves.items():
        axes.plot(sizes, values, marker="o", label=name)
    axes.set_xlabel("documents")
    axes.set_ylabel("accuracy in percent")
    axes.legend()


if __name__ == "__main__":
    main()
