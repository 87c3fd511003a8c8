"""Goldberg, Zhu and Wright (2007), Table 1 and Figures 1 and 2: dissimilarity in graph-based classification.

    python examples/papers/goldberg_2007.py --json goldberg.json --figure goldberg.png

Table 1: handwritten digits with dissimilar pairs in a multiclass SVM. Figures: two classes (g50c and mac-windows) with
dissimilarity edges in the graph of manifold regularization; errors inside and outside the sample, by the number and
weight of the edges.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from reporting import Report, options, progress
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

import cvxstructreg as csr
from cvxstructreg.datasets import DataNotFoundError, load_g50c, load_mac_windows, load_uspst, make_moons_with_pairs
from cvxstructreg.graphs import NeighborGraph, mixed_graph, oracle_pairs

PROTOCOL = (
    "The ten published splits with 50 labelled points each. Pairs are drawn at random from unlabelled points of "
    "different classes, as an oracle would provide them. The sets of pairs are nested: each consists of the first m "
    "pairs of one draw.",
    "Table 1: RBF kernel of width 5, lam1 = 0.001, lam2 = 1, mean loss and lam2 / |D| as in eq. (8). The error is "
    "measured on the unlabelled points and averaged over the splits.",
    "Figures: g50c with an RBF kernel of width 17.5 and 50 neighbours; mac-windows with a linear kernel and 200 "
    "cosine neighbours. The normalized mixed matrix is taken to the power 5; lam1 = 1e-6, lam2 = 1 and 0.01. The "
    "paper takes its values from earlier work on these data sets; ours were fixed beforehand, without looking at test "
    "errors. A fifth of the unlabelled points is held out of the graph.",
)
DIFFERENCES = (
    "The paper does not say which pairs were drawn, so our pairs differ from the paper's.",
    "The paper uses 50 to 12,800 edges, four folds with ten trials each, and weights at 200 edges; we use up to 1,000 "
    "edges, the ten published splits, and two weights.",
    "The paper does not give the kernel width of Table 1. Its lam1 is the best on the test set without pairs.",
    "Table 2 (politics.com) is not repeated: the data are not available.",
)
#: Overall error in percent in the paper's Table 1, by number of pairs.
PAPER = {0: 24.48, 10: 24.41, 20: 24.32, 40: 24.27, 80: 23.96, 160: 23.63, 320: 23.30}


def digits_table(given: Any) -> list[list[Any]]:
    """Error of the multiclass SVM by number of dissimilar pairs."""
    data = load_uspst(data_home=given.data_home)
    counts = (0, 320) if given.quick else (0, 10, 20, 40, 80, 160, 320)
    splits = 2 if given.quick else len(data.labeled_idx)
    model = csr.Kernel(rbf_kernel(data.data, gamma=1.0 / (2.0 * 5.0**2)))
    classes, y = np.unique(data.target, return_inverse=True)
    errors = np.zeros((splits, len(counts)))
    for split in range(splits):
        rows, others = data.labeled_idx[split], data.unlabeled_idx[split]
        pairs = oracle_pairs(y, max(counts), rows=others, random_state=given.seed + split)
        for column, count in enumerate(counts):
            loss = csr.MulticlassHinge(y[rows], rows=rows, classes=range(len(classes)))
            objective = (1.0 / len(rows)) * loss + 1e-3 * csr.RKHSNorm()
            if count:
                objective = objective + (1.0 / count) * csr.Dissimilarity(pairs[:count])
            solution = csr.Problem(model, objective).solve()
            guess = solution.scores[others].argmax(axis=1)
            errors[split, column] = 100.0 * float(np.mean(guess != y[others]))
        progress(f"digits: split {split + 1}: {errors[split].round(2)}")
    return [
        [count, PAPER.get(count), float(column.mean()), float(column.std(ddof=1))]
        for count, column in zip(counts, errors.T, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Setting:
    """A two-class data set, and the parameters of its kernel and graph."""

    name: str
    X: Any
    y: Any
    labelled: Any
    neighbours: int
    width: float | None
    lam2: float

    def kernel(self, X: Any, Z: Any) -> Any:
        """The Gaussian kernel, or the linear kernel if there is no width."""
        return linear_kernel(X, Z) if self.width is None else rbf_kernel(X, Z, gamma=1.0 / (2.0 * self.width**2))


def settings(given: Any) -> list[Setting]:
    """The two data sets of the figures, or two moons for a quick run without the real data."""
    try:
        one, two = load_g50c(data_home=given.data_home), load_mac_windows(data_home=given.data_home)
    except DataNotFoundError:
        if not given.quick:
            raise
        moons = make_moons_with_pairs(150, n_labeled=2, random_state=given.seed)
        labels = np.where(moons.target == 1, 1, -1)
        return [Setting("two moons", moons.data, labels, moons.labeled_idx[None, :], 10, 0.3, 1e-3)]
    return [
        Setting("g50c", one.data, one.target, one.labeled_idx, 50, 17.5, 1.0),
        Setting("mac-windows", two.data, two.target, two.labeled_idx, 200, None, 1e-2),
    ]


#: Weights of the dissimilarity edges; similarity edges have weights of at most 1.
WEIGHTS = (1.0, 10.0)
LOSSES = (csr.Hinge, csr.Squared)


def curves(setting: Setting, given: Any) -> tuple[list[int], dict[str, list[float]]]:
    """Errors inside and outside the sample by number of dissimilarity edges, for each loss and weight."""
    counts = [0, 50] if given.quick else [0, 100, 300, 1000]
    weights = WEIGHTS[:1] if given.quick else WEIGHTS
    found = []
    for split, labelled in enumerate(setting.labelled[: 1 if given.quick else None]):
        found.append(errors_by_count(setting, labelled, weights, counts, given.seed + split))
        progress(f"{setting.name}: split {split + 1}: {(100.0 * found[-1][..., -1]).round(2).tolist()} in percent")
    mean = 100.0 * np.mean(found, axis=0)
    lines = {}
    for (a, loss), (c, weight), (e, place) in itertools.product(
        enumerate(LOSSES), enumerate(weights), enumerate(("in", "out of"))
    ):
        lines[f"{loss.__name__}, weight {weight:g}, {place} sample"] = mean[a, c, e].tolist()
    return counts, lines


def errors_by_count(setting: Setting, labelled: Any, weights: Any, counts: list[int], seed: int) -> Any:
    """Errors of one split, as an array of shape loss x weight x (in, out of sample) x count."""
    rng = np.random.default_rng(seed)
    others = rng.permutation(np.setdiff1d(np.arange(len(setting.y)), labelled))
    outside, inside = others[: len(others) // 5], others[len(others) // 5 :]
    known = np.concatenate([labelled, inside])
    X, y = setting.X[known], setting.y[known]
    metric = "cosine" if setting.width is None else "euclidean"
    near = NeighborGraph(min(setting.neighbours, len(known) - 1), weights="heat", metric=metric).fit(X).graph_
    model = csr.Kernel(setting.kernel(X, X))
    beyond = setting.kernel(setting.X[outside], X)
    unlabelled = np.arange(len(labelled), len(known))
    pairs = oracle_pairs(y, max(counts), rows=unlabelled, random_state=seed)
    found = np.zeros((len(LOSSES), len(weights), 2, len(counts)))
    for (c, weight), (d, count) in itertools.product(enumerate(weights), enumerate(counts)):
        if count == 0 and c > 0:
            found[:, c, :, d] = found[:, 0, :, d]  # without edges, the weight has no effect
            continue
        graph = mixed_graph(near, pairs[:count], weight) if count else near
        penalty = csr.Laplacian(graph, normalized=True, power=5).on_function()
        for a, loss in enumerate(LOSSES):
            rows = np.arange(len(labelled))
            targets = y[rows].astype(float) if loss is csr.Squared else y[rows]
            objective = loss(targets, rows=rows) + 1e-6 * csr.RKHSNorm() + setting.lam2 * penalty
            solution = csr.Problem(model, objective).solve()
            scores = beyond @ solution.coef + solution.intercept
            found[a, c, :, d] = (
                np.mean(np.sign(solution.scores[unlabelled]) != y[unlabelled]),
                np.mean(np.sign(scores) != setting.y[outside]),
            )
    return found


def main() -> None:
    """Run the table and the figures."""
    given = options(__doc__)
    report = Report("Goldberg, Zhu and Wright 2007, Table 1 and Figures 1 and 2", PROTOCOL, DIFFERENCES)
    try:
        rows = digits_table(given)
        report.add(
            "Table 1, USPST: error in percent", ["pairs", "paper", "here", "standard deviation over splits"], rows
        )
    except DataNotFoundError as error:
        if not given.quick:
            raise
        progress(f"skipped in the quick run: {error}")
    panels = {}
    for setting in settings(given):
        counts, lines = panels[setting.name] = curves(setting, given)
        rows = [[line, *values] for line, values in lines.items()]
        report.add(f"{setting.name}: error in percent by number of dissimilarity edges", ["", *counts], rows)
    report.finish(given.json, given.figure, lambda figure: draw(figure, panels))


def draw(figure: Any, panels: dict[str, tuple[list[int], dict[str, list[float]]]]) -> None:
    """Plot the error against the number of dissimilarity edges, one colour for each loss and weight."""
    for axes, (name, (counts, lines)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        colours: dict[str, str] = {}
        for label, values in lines.items():
            kind = label.rsplit(", ", 1)[0]
            style = "--" if "out of" in label else "-"
            line = axes.plot(counts, values, marker="o", linestyle=style, color=colours.get(kind), label=label)[0]
            colours[kind] = line.get_color()
        axes.set_xlabel("dissimilarity edges")
        axes.set_ylabel("error in percent")
        axes.set_ylim(bottom=0)
        axes.set_title(name)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    figure.set_size_inches(5 * len(panels), 5)


if __name__ == "__main__":
    main()
