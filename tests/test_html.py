"""HTML forms: short, escaped, and without colours of their own, so that they read well on any background."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import cvxstructreg as csr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 12))
Y = X[:, 0] - X[:, 1] + 0.1 * RNG.normal(size=30)
NAMES = ["<b>bold</b>", *(f"word{j}" for j in range(1, 12))]
GRAPH = csr.Graph.from_edges([(0, 1), (1, 2), (2, 3)], weights=[1.0, -2.0, 0.5], n_nodes=12, names=NAMES)
GROUPS = csr.Groups([[0, 1, 2], [2, 3]], n_features=12, names=["first", "a < b"], feature_names=NAMES)
LINKED = csr.Graph(GRAPH.similarity().weights, NAMES)
PROBLEM = csr.Problem(csr.Linear(X), csr.Squared(Y) + 0.1 * csr.L1() + 0.1 * csr.Laplacian(LINKED))


class Checker(HTMLParser):
    """Collects the text, and fails on tags that are not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def text_of(item, longest=6000):
    html = item._repr_html_()
    assert len(html) < longest
    assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|white|black|class=|<script|<style", html), html
    checker = Checker()
    checker.feed(html)
    assert not checker.open
    return " ".join(checker.text)


def test_a_solution_shows_its_weights_and_what_the_status_means():
    solution = PROBLEM.solve()
    text = text_of(solution)
    assert "optimal: the relative gap is proved to be within the tolerance" in text
    assert "<b>bold</b>" in text and "duality_gap" in text and solution.solver in text
    nonzero = np.count_nonzero(solution.coef)
    assert f"{nonzero} of 12 nonzero" in text
    assert (f"and {nonzero - 8} more" in text) == (nonzero > 8)


def test_several_outputs_and_an_early_end():
    problem = csr.Problem(csr.Linear(X), csr.Multinomial(np.digitize(Y, [-0.5, 0.5])) + csr.Ridge())
    with pytest.warns(csr.InaccurateWarning):
        text = text_of(problem.solve("fista", max_iter=2))
    assert "max_iter: the solve ended early" in text


def test_a_certificate_says_what_it_proves():
    certificate = PROBLEM.solve().certificate
    assert "The optimum lies between" in text_of(certificate) and "certificate.dual" in text_of(certificate)
    nan = float("nan")
    assert "No bound on the optimum" in text_of(csr.Certificate("kkt", 1.0, nan, nan, nan, 0.1))


def test_a_report_is_a_table():
    report = csr.verify(PROBLEM, {"mine <1>": lambda problem: np.zeros(12), "broken": lambda problem: None})
    text = text_of(report, 9000)
    assert "mine <1>" in text and "NOT all solvers agree" in text and "csr.diagnose" in text and "returned None" in text
    assert "all solvers agree within their certificates" in text_of(csr.verify(PROBLEM), 12000)


def test_graphs_and_groups():
    text = text_of(GRAPH)
    assert "2 similar, 1 dissimilar" in text and "8 nodes without an edge" in text and "word1" in text
    text = text_of(GROUPS)
    assert "a < b" in text and "8 features in no group" in text and "up to 2 groups" in text
    many = csr.Groups.from_labels(np.arange(1000) // 3)
    assert "and 326 more" in text_of(many) and "overlap none" in re.sub(r"\s+", " ", text_of(many))
    assert text_of(csr.Graph(np.zeros((3, 3)))) and text_of(csr.Groups([], n_features=3))


def test_a_path_shows_a_few_points():
    path = csr.path(PROBLEM, n_points=20)
    text = text_of(path, 12000)
    assert "Path of 20 strengths" in text and "12 of 20 points not shown" in text
    assert f"{path.strengths[0]:.4g}" in text and f"{path.strengths[-1]:.4g}" in text
    bare = path.without_proofs()
    assert all(solution.certificate.dual is None for solution in bare)


def test_a_diagnosis():
    assert "Not optimal" in text_of(csr.diagnose(PROBLEM, np.ones(12)))
    assert "Optimal" in text_of(csr.diagnose(PROBLEM, PROBLEM.solve(tol=1e-9)))


def test_bars_begin_at_the_same_place():
    cells = re.findall(r'<td style="([^"]*)"><span', PROBLEM.solve()._repr_html_())
    assert cells and all("text-align:left" in style for style in cells)
