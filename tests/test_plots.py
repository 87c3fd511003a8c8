"""The pictures show what they should: each test looks at what was drawn."""

from __future__ import annotations

import importlib.util
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
    assert len(drawn) == len(plots.__all__)
    for picture in drawn:
        assert 2_000 < picture.stat().st_size < 100_000
        assert (docs / "images" / picture.name).exists()
    page = (docs / "plots.md").read_text(encoding="utf-8")
    assert all(f"plots.{name}(" in page for name in plots.__all__)
