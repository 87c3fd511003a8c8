"""The pictures show what they should: each test looks at what was drawn."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba

import cvxstructreg as csr
from cvxstructreg import plots
from cvxstructreg.paths import path
from cvxstructreg.plots.canvas import DISSIMILAR, line_look, spread


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def lasso():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 5))
    y = 3.0 * X[:, 1] - X[:, 3] + 0.1 * rng.normal(size=30)
    return csr.Problem(csr.Linear(X), csr.Squared(y) + csr.L1())


def test_a_path_shows_each_weight_against_the_strength():
    points = path(lasso(), n_points=7)
    ax = plots.coefficient_path(points, chosen=points.strengths[3], names=list("abcde"), n_named=2)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"b", "d"} <= set(lines)
    assert lines["b"].get_xdata() == pytest.approx(points.strengths)
    assert lines["b"].get_ydata() == pytest.approx(points.coefs[:, 1])
    marked = lines[f"chosen: {points.strengths[3]:.3g}"]
    assert marked.get_xdata()[0] == points.strengths[3]
    assert ax.xaxis_inverted()
    assert [text.get_text() for text in ax.texts] == ["b", "d"]  # from the top to the bottom, as the lines end
    assert [text.get_color() for text in ax.texts] == [lines["b"].get_color(), lines["d"].get_color()]
    others = [line for line in ax.get_lines() if line.get_color() == "0.85"]
    assert len(others) == np.count_nonzero(np.abs(points.coefs).max(axis=0)) - 2
    count = np.count_nonzero(points.coefs[3])
    assert ax.get_title() == f"chosen: {points.strengths[3]:.3g}, {count} of 5 weights nonzero"


def test_a_path_names_what_matters_at_the_chosen_strength():
    X = np.eye(3)
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Squared([3.0, 2.0, 1.0]) + csr.L1())
    points = path(problem, strengths=[2.5, 0.1])
    assert [text.get_text() for text in plots.coefficient_path(points, chosen=2.5, n_named=1).texts] == ["0"]
    scaled = csr.Problem(csr.Linear(X * [1.0, 0.1, 1.0], intercept=False), csr.Squared([3.0, 2.0, 1.0]) + csr.L1())
    points = path(scaled, strengths=[2.5, 0.001])  # the second is the largest only at the end
    assert [text.get_text() for text in plots.coefficient_path(points, chosen=2.5, n_named=1).texts] == ["0"]
    assert [text.get_text() for text in plots.coefficient_path(points, n_named=1).texts] == ["1"]


def test_labels_are_spread_in_order():
    placed = spread([5.0, 0.0, 0.1, 0.2, 5.05], 1.0)
    assert np.all(np.diff(np.sort(placed)) >= 1.0 - 1e-12)
    assert np.argsort(placed).tolist() == [1, 2, 3, 0, 4]
    assert placed[[1, 2, 3]].mean() == pytest.approx(0.1)
    assert spread([], 1.0).size == 0


def test_lines_can_be_told_apart():
    looks = [tuple(line_look(number).items()) for number in range(28)]
    assert len(set(looks)) == 28


def test_a_path_draws_on_the_axes_given():
    _, ax = plt.subplots()
    assert plots.coefficient_path(path(lasso(), n_points=3), ax=ax) is ax


def test_a_path_refuses_what_it_cannot_draw():
    points = path(lasso(), n_points=3)
    with pytest.raises(ValueError, match="names must contain one name for each of 5"):
        plots.coefficient_path(points, names=["a"])
    with pytest.raises(ValueError, match="output must be a column from 0 to 0"):
        plots.coefficient_path(points, output=1)
    with pytest.raises(ValueError, match="leave out strength 0"):
        plots.coefficient_path(path(lasso(), strengths=[1.0, 0.0]))


def test_convergence_shows_the_best_gap_so_far():
    solution = lasso().solve("fista")
    ax = plots.convergence({"mine": solution}, tol=1e-6)
    line, tolerance = ax.get_lines()
    assert line.get_label() == "mine"
    drawn = np.asarray(line.get_ydata())
    assert len(drawn) == len(solution.history) + 1
    assert drawn[-1] == pytest.approx(max(min(r.certificate.error for r in solution.history), 1e-16))
    assert np.all(np.diff(drawn[np.isfinite(drawn)]) <= 0)
    assert tolerance.get_ydata()[0] == 1e-6
    assert ax.get_yscale() == "log"
    assert len(plots.convergence(solution).get_lines()) == 1
    with pytest.raises(ValueError, match="solutions is empty"):
        plots.convergence([])


def signed_graph():
    return csr.Graph.from_edges(
        [(0, 1), (1, 2), (2, 3)], weights=[1.0, 0.5, -1.0], n_nodes=5, names=["a", "b", "c", "d", "e"]
    )


def test_a_graph_has_colours_names_and_edges():
    at = np.array([(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)], dtype=float)
    ax = plots.feature_graph(signed_graph(), [1.0, 0.5, -1.0, 0.0, 0.0], positions=at)
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c"}
    selected, others = (item for item in ax.collections if isinstance(item, PathCollection))
    assert np.asarray(selected.get_offsets()) == pytest.approx(at[:3])
    assert len(others.get_offsets()) == 2
    assert selected.get_sizes()[0] > others.get_sizes()[0]
    blue, _, red = selected.get_facecolors()
    assert blue[2] > blue[0] and red[0] > red[2]
    similar, dissimilar = (item for item in ax.collections if isinstance(item, LineCollection))
    assert len(dissimilar.get_segments()) in (1, 2)  # an undirected edge is stored in both directions
    assert dissimilar.get_segments()[0][:, 0].tolist() in ([2.0, 3.0], [3.0, 2.0])
    assert tuple(dissimilar.get_colors()[0]) == to_rgba(DISSIMILAR)
    assert len(similar.get_segments()) == 2 * len(dissimilar.get_segments())
    assert ax.get_title() == "3 of 5 features selected"


def test_a_large_graph_shows_the_heaviest_features_first():
    ax = plots.feature_graph(signed_graph(), [1.0, 0.0, 0.0, 0.0, 0.2], n_shown=3)
    assert {text.get_text() for text in ax.texts} == {"a", "e"}
    assert sum(len(item.get_offsets()) for item in ax.collections if isinstance(item, PathCollection)) == 3
    assert "2 nodes not shown" in ax.get_title()
    lonely = plots.feature_graph(signed_graph(), [0.0, 1.0, 0.0, 0.0, 0.0], n_shown=4)
    assert "2 nodes not shown" in lonely.get_title()  # d and e are neither selected nor near


def test_names_do_not_cover_each_other():
    names = ["one long name", "another long name", "a third long name"]
    graph = csr.Graph.from_edges([(0, 1), (1, 2)], names=names)
    _, ax = plt.subplots(figsize=(6, 4))
    plots.feature_graph(graph, [1.0, 1.0, 1.0], positions=[(0.0, 0.0), (0.04, 0.0), (1.0, 1.0)], ax=ax)
    ax.figure.canvas.draw()
    first, second, third = (text.get_window_extent() for text in ax.texts)
    assert not first.overlaps(second) and not second.overlaps(third)


def test_a_graph_refuses_what_it_cannot_draw():
    with pytest.raises(ValueError, match="one weight for each of 5"):
        plots.feature_graph(signed_graph(), [1.0])
    with pytest.raises(ValueError, match="one point for each of 5"):
        plots.feature_graph(signed_graph(), np.zeros(5), positions=[(0, 0)])
    with pytest.raises(ValueError, match="n_shown"):
        plots.feature_graph(signed_graph(), np.zeros(5), n_shown=0)


def test_sentences_are_coloured_by_their_sign():
    ax = plots.coloured_sentences(["good " * 30, "bad", "neither"], [1.0, -2.0, 0.0], label="log-odds")
    assert [text.get_text().split()[0] for text in ax.texts] == ["good", "bad", "neither"]
    assert "\n" in ax.texts[0].get_text()
    good, bad, neither = (patch.get_facecolor() for patch in ax.patches)
    assert good[2] > good[0] and bad[0] > bad[2] and neither[3] == 0.0
    assert ax.get_ylabel() == "log-odds"
    ax.figure.canvas.draw()
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["+1", "-2", "0"]
    with pytest.raises(ValueError, match="each of 2 sentences"):
        plots.coloured_sentences(["a", "b"], [1.0])
    with pytest.raises(ValueError, match="finite"):
        plots.coloured_sentences(["a"], [np.nan])


class HalfPlane:
    """Class 1 where the first feature is positive."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)


def test_regions_examples_and_edges():
    X, y = np.array([[-1.0, 0.0], [1.0, 0.0], [0.5, 1.0], [-0.5, 1.0]]), np.array([0, 1, -1, -1])
    graph = csr.Graph.from_edges([(0, 3), (1, 2), (2, 3)], weights=[1.0, 1.0, -1.0], n_nodes=4)
    ax = plots.decision_regions(HalfPlane(), X, y, graph=graph, pairs=[(0, 1)])
    assert set(ax.get_legend_handles_labels()[1]) == {"unlabeled", "class 0", "class 1", "similar", "dissimilar"}
    links = {item.get_label(): item for item in ax.collections if isinstance(item, LineCollection)}
    assert len(links["similar"].get_segments()) == 2
    assert len(links["dissimilar"].get_segments()) == 2
    dots = {item.get_label(): item.get_offsets() for item in ax.collections if isinstance(item, PathCollection)}
    assert np.asarray(dots["class 1"]).tolist() == [[1.0, 0.0]]
    assert len(dots["unlabeled"]) == 2
    frame = pd.DataFrame(X, columns=["width", "height"])
    named = plots.decision_regions(HalfPlane(), frame)
    assert (named.get_xlabel(), named.get_ylabel()) == ("width", "height")
    with pytest.raises(ValueError, match="two columns"):
        plots.decision_regions(HalfPlane(), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="4 nodes, but there are 3"):
        plots.decision_regions(HalfPlane(), X[:3], graph=graph)


def test_the_page_draws_its_pictures(tmp_path):
    docs = Path(__file__).parent.parent / "docs"
    specification = importlib.util.spec_from_file_location("make_images", docs / "images" / "make.py")
    make = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(make)
    drawn = make.draw(tmp_path)
    assert len(drawn) == len(plots.__all__) + 1  # and the picture of worked/images.md
    for picture in drawn:
        assert 2_000 < picture.stat().st_size < 100_000
        assert (docs / "images" / picture.name).exists()
    page = (docs / "plots.md").read_text(encoding="utf-8")
    assert all(f"plots.{name}(" in page for name in plots.__all__)


def test_convergence_against_iterations_and_of_a_report():
    problem = lasso()
    report = csr.verify(problem, {"f": "fista", "stored": problem.solve().coef})
    ax = plots.convergence(report, x="iterations")
    assert [line.get_label() for line in ax.get_lines()] == ["cvxpy", "f"]
    counts = ax.get_lines()[1].get_xdata()
    assert counts[-1] == report.solutions["f"].n_iter and np.all(np.diff(counts) >= 0)
    assert ax.get_xlabel() == "iterations"
    with pytest.raises(ValueError, match="x must be 'seconds' or 'iterations', got 'hours'"):
        plots.convergence(report, x="hours")


def test_convergence_leaves_compilation_out():
    solution = lasso().solve("fista")
    slow = replace(
        solution,
        time=solution.time + 100.0,
        history=tuple(replace(r, time=r.time + 100.0, compiling=r.compiling + 100.0) for r in solution.history),
    )
    (line,) = plots.convergence(slow).get_lines()
    assert line.get_xdata()[-1] < 50.0
    assert slow.compiling >= 100.0


def test_a_prox_is_drawn_along_a_line():
    ax = plots.prox(csr.L1(), t=(1.0, 2.0))
    first, second, identity = ax.get_lines()[:3]
    v = np.asarray(first.get_xdata())
    assert first.get_ydata() == pytest.approx(np.sign(v) * np.maximum(np.abs(v) - 1.0, 0.0))
    assert second.get_ydata() == pytest.approx(np.sign(v) * np.maximum(np.abs(v) - 2.0, 0.0))
    assert identity.get_ydata() == pytest.approx(v)
    groups = csr.GroupLasso(csr.Groups([[0, 1]]))
    (line, _) = plots.prox(2.0 * groups, t=0.5, direction=[1.0, 1.0], point=[1.0, 1.0]).get_lines()[:2]
    s = np.asarray(line.get_xdata())
    assert line.get_ydata() == pytest.approx(np.sign(s) * np.maximum(np.abs(s) - 1.0, 0.0), abs=1e-8)
    with pytest.raises(ValueError, match="t must be positive, got -1"):
        plots.prox(csr.L1(), t=-1.0)
    with pytest.raises(TypeError, match="expected an atom such as L1"):
        plots.prox(abs)
    with pytest.raises(ValueError, match="direction must not be zero"):
        plots.prox(csr.L1(), direction=[0.0])


def test_a_conjugate_ends_where_its_domain_ends():
    ax = plots.conjugate(2.0 * csr.L1(), reach=3.0, n_points=61)
    f, conj, left, right = ax.get_lines()[:4]
    u = np.asarray(conj.get_xdata())
    inside = np.isfinite(conj.get_ydata())
    assert np.array_equal(inside, np.abs(u) <= 2.0 + 1e-12)
    assert f.get_ydata() == pytest.approx(2.0 * np.abs(u))
    assert {round(line.get_xdata()[0], 9) for line in (left, right)} == {-2.0, 2.0}
    ridge = plots.conjugate(csr.Ridge())
    values = ridge.get_lines()[1]
    assert values.get_ydata() == pytest.approx(np.asarray(values.get_xdata()) ** 2 / 4.0)


def test_cvxpy_computes_conjugates_that_an_atom_does_not_define():
    groups = csr.GroupLasso(csr.Groups([[0, 1], [1, 2]]))
    assert not groups.can("conj") and not groups.can("dual_norm")
    conj = plots.conjugate(groups, reach=2.0, n_points=9).get_lines()[1]
    inside = np.isfinite(conj.get_ydata())
    u = np.asarray(conj.get_xdata())
    assert np.all(inside[np.abs(u) < 0.9]) and not np.any(inside[np.abs(u) > 1.1])


def test_primal_and_dual_values_close_in():
    problem = lasso()
    optimum = problem.solve(tol=1e-9).objective
    solution = problem.solve("fista")
    for history in (solution, solution.history, None):
        primal, dual, null = plots.duality(problem, history).get_lines()
        assert np.all(np.diff(primal.get_ydata()) <= 0) and np.all(np.diff(dual.get_ydata()) >= 0)
        assert np.all(np.asarray(primal.get_ydata()) >= optimum * (1 - 1e-9))
        assert np.all(np.asarray(dual.get_ydata()) <= optimum * (1 + 1e-9))
        assert null.get_label() == "zero weights"
    assert "seconds" in plots.duality(problem, solution, x="seconds").get_xlabel()
    low, high = plots.duality(problem, solution).get_title().removeprefix("optimum between ").split(" and ")
    assert float(low) < float(high)  # as many digits as it takes to tell them apart
    with pytest.raises(ValueError, match="x must be"):
        plots.duality(problem, solution, x="hours")
    with pytest.raises(ValueError, match="no certificate with a lower bound"):
        plots.duality(problem, [])


def test_a_cv_curve_shows_scores_errors_and_the_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    model = csr.LaplacianElasticNetRegressorCV(n_strengths=6, cv=3).fit(X, X[:, 0] + 0.3 * rng.normal(size=40))
    ax = plots.cv_curve(model)
    *folds, mean, chosen = ax.get_lines()
    assert len(folds) == 3
    assert mean.get_ydata() == pytest.approx(model.mean_score_)
    assert chosen.get_xdata()[0] == model.best_strength_ and "chosen" in chosen.get_label()
    assert len(plots.cv_curve(model, folds=False).get_lines()) == 2
    with pytest.raises(TypeError, match="LaplacianElasticNetRegressor has no strengths_"):
        plots.cv_curve(csr.LaplacianElasticNetRegressor())


def test_a_large_graph_with_isolated_nodes_stays_readable():
    rng = np.random.default_rng(0)
    tree = [(i, int(rng.integers(0, i))) for i in range(1, 250)]
    pairs = [(i, i + 1) for i in range(260, 320, 2)]
    graph = csr.Graph.from_edges(tree + pairs, n_nodes=500)
    ax = plots.feature_graph(graph, rng.normal(size=500) * (rng.random(500) < 0.1), n_shown=500)
    drawn = [item for item in ax.collections if isinstance(item, PathCollection)]
    at = np.concatenate([np.asarray(item.get_offsets()) for item in drawn])
    assert len(at) == 500
    distances = np.linalg.norm(at[:, None] - at[None], axis=2) + np.diag(np.full(500, np.inf))
    span = np.ptp(at, axis=0)
    nearest = distances.min(axis=1)
    assert np.median(nearest) > 0.3 * np.sqrt(span[0] * span[1] / 500)  # nodes use the space
    assert 0.8 < span[0] / span[1] < 3.0
    lines = np.concatenate([c.get_segments() for c in ax.collections if isinstance(c, LineCollection)])
    lonely = at[~(np.abs(at[:, None] - lines.reshape(-1, 2)[None]).max(axis=2) < 1e-9).any(axis=1)]
    assert len(lonely) == 190 and lonely[:, 1].max() < lines[:, :, 1].min()  # below everything else
    small = plots.feature_graph(csr.Graph(graph.weights[:50][:, :50]), np.ones(50))
    sizes = [item.get_sizes()[0] for item in small.collections if isinstance(item, PathCollection)]
    assert min(item.get_sizes()[0] for item in drawn) < min(sizes)
