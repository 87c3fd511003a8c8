"""Parts of the paper scripts against definitions: the global test, the kernel of a feature network, stopping rules."""

from __future__ import annotations

import importlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

SCRIPTS = Path(__file__).parent.parent / "examples" / "papers"


@pytest.fixture
def scripts(monkeypatch):
    """A function that imports a module of the paper scripts."""
    monkeypatch.syspath_prepend(SCRIPTS)
    return importlib.import_module


def test_the_global_test_finds_a_related_set_of_genes(scripts):
    data = scripts("fei_data")
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 17)
    noise = rng.standard_normal((34, 10))
    assert data.global_test(noise + 1.5 * y[:, None], y) < 0.01
    p_values = [data.global_test(rng.standard_normal((34, 10)), y) for _ in range(20)]
    assert 0.2 < np.mean(p_values) < 0.8
    assert data.global_test(noise * 7.0 + 3.0, y) == data.global_test(noise, y)  # units do not matter


def test_pathways_that_overlap_are_left_out(scripts):
    apart = scripts("fei_data").apart
    sets = {"a": [0, 1], "b": [1, 2], "c": [3], "d": [4]}
    assert list(apart(sets, {"a": 0.02, "b": 0.01, "c": 0.05, "d": 0.2})) == ["b", "c"]


def test_the_kernel_of_the_feature_network_is_the_same_problem(scripts):
    fei, task_of = scripts("fei_2010"), scripts("fei_data").task_of
    task = task_of("made", 60, 0, None, True)
    rows = np.arange(60)
    (model,) = fei.network_path(task, task.X, rows, [(0.0, 2.0)])
    penalty = 2.0 * csr.FeatureNetwork(task.graph) + 0.02 * csr.Ridge()
    problem = csr.Problem(csr.Linear(task.X), csr.Logistic(task.y) + penalty)
    assert task.graph.isolated.size == 0
    assert problem.value(model.coef, model.intercept) <= problem.solve(tol=1e-8).objective * (1.0 + 2e-3)


def test_runs_end_by_the_change_of_w(scripts):
    published = scripts("published_admm")
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.poisson(0.6, size=(40, 12)).astype(float))
    y = (np.asarray(X[:, [0]].todense()).ravel() > 0).astype(int)
    groups = csr.Groups([sorted(rng.choice(12, 3, replace=False).tolist()) for _ in range(15)], n_features=12)
    run = published.Stops(X, y, groups, 0.3, 0.2, 0.7, change=1e-2)
    points = []
    while not run.ended:
        points.append(run.after(run.count + 1)[0][0])
    changes = [np.linalg.norm(b - a) / np.linalg.norm(b) for a, b in pairwise(points)]
    assert run.count == len(points) > 2
    assert changes[-1] <= 1e-2 < min(changes[:-1])


@pytest.mark.parametrize(("lam", "lam1", "words"), [(0.3, 0.2, 12), (0.05, 0.5, 12), (1.0, 0.1, 12), (0.3, 0.2, 9)])
def test_the_optimum_by_ridges_is_that_of_the_library(scripts, lam, lam1, words):
    rng = np.random.default_rng(1)
    X = sp.csr_array(rng.poisson(0.6, size=(40, 12)).astype(float))
    y = (np.asarray(X[:, [0]].todense()).ravel() + rng.standard_normal(40) > 0.5).astype(int)
    members = [sorted(rng.choice(words, 3, replace=False).tolist()) for _ in range(15)]
    tokens = [np.sqrt(rng.integers(1, 4, size=3)) for _ in members]
    groups = csr.Groups(members, n_features=12, weights=rng.integers(1, 4, size=15), member_weights=tokens)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + lam * csr.GroupLasso(groups) + lam1 * csr.L1())
    best = problem.solve(tol=1e-8)
    ours = scripts("sentence_optimum").SentenceProblem(X, y, groups, lam, lam1)
    found = ours.solve()
    assert found.objective == pytest.approx(problem.value(found.coef, found.intercept), rel=1e-9)
    assert found.gap <= 1e-4 and found.bound <= best.objective * (1.0 + 1e-9)
    assert best.objective * (1.0 - 1e-8) <= found.objective <= best.objective * (1.0 + 1e-4)
    zeros = np.zeros(12), 0.0
    assert found.gap_of(ours.objective(*zeros)) == pytest.approx(1.0 - found.bound / problem.value(*zeros))


def test_the_score_of_a_sentence_is_what_the_true_class_loses(scripts):
    models = scripts("text_models")
    name = scripts("text_data").MADE
    points = {"ridge": {"lam": 1.0}}
    variant = {"name": name, "data_home": None} | scripts("sentence_cells").MAIN
    header, rows = models.sentence_table(variant, points, {"lam": 0.1, "lam1": 0.1, "rho": 1.0})
    assert header == ["sentence", "selected", "sentences", "ridge", "paper"] and rows[0][-1] is None
    data = scripts("text_data").text_data(name, None)
    w, b = models.models_of(data.whole, points, {"lam": 0.1, "lam1": 0.1, "rho": 1.0})[0]["ridge"]
    text = next(t for t in data.texts if " ".join(data.splitter(t)[0].split())[:60] == rows[0][0])
    sentences = data.splitter(text)
    counts = data.vectorizer.transform([" ".join(sentences), " ".join(sentences[1:])]).toarray()
    probability = 1.0 / (1.0 + np.exp(-(counts @ w + b)))
    assert rows[0][3] == pytest.approx(np.log(probability[0]) - np.log(probability[1]), abs=1e-3)


def test_a_grid_grows_until_no_edge_is_chosen(scripts, monkeypatch):
    models = scripts("text_models")
    data = scripts("text_data").text_data(scripts("text_data").MADE, None)
    tried = []

    def solved(model, part, point, start):
        tried.append(point["lam"])
        return type("Found", (), {"coef": np.ones(2), "intercept": 0.0})

    monkeypatch.setattr(models, "solved", solved)
    scores = {0.001: 3.0, 0.01: 2.0, 0.1: 1.0}
    development = type("Part", (), {"right": lambda *_: np.array([scores.get(round(tried[-1], 9), 0.0)])})()
    found = type("Data", (), {"training": data.training, "development": development})()
    best, point, count = models.best_inside(found, "ridge", {"lam": (1.0, 0.1, 0.01)}, 6)
    assert round(point["lam"], 9) == 0.001 and count == len(tried) == 5 and best == 300.0
    tried.clear()
    assert models.best_inside(found, "ridge", {"lam": (1.0, 0.1, 0.01)}, 0)[2] == 3


def test_selected_sentences_are_those_with_nonzero_copies(scripts):
    models, published = scripts("text_models"), scripts("published_admm")
    part = scripts("text_data").text_data(scripts("text_data").MADE, None).whole
    trunk = published.Trunk(part.X, part.y, part.groups, 1.0, 1.0, True)
    steps = trunk.run(0.5, residuals=True)
    copies = [next(steps)[1] for _ in range(8)][-1]
    nonzero = np.add.reduceat(copies.v**2, part.groups.indptr[:-1]) > 0
    rows = np.zeros((len(part.groups), part.groups.n_features))
    for g, members in enumerate(part.groups):
        rows[g, members] = np.rint(part.groups.member_weights[part.groups.indptr[g] : part.groups.indptr[g + 1]] ** 2)
    found = models.selected_sentences(part, [*rows, np.zeros(rows.shape[1])], copies.multipliers(1.0), 0.5)
    assert found == [*np.where(nonzero, "yes", "no"), "-"] and 0 < nonzero.sum() < nonzero.size


def test_overlapping_communities_of_two_cliques(scripts):
    overlapping = scripts("skianis_2016").overlapping
    W = np.zeros((20, 20))
    W[:10, :10], W[10:, 10:], W[9, 10], W[10, 9] = 1.0, 1.0, 1.0, 1.0
    np.fill_diagonal(W, 0.0)
    found = [set(map(int, group)) for group in overlapping(sp.csr_array(W))]
    assert set(range(10)) in found and set(range(10, 20)) in found


def test_the_choice_of_graph_parameters_solves_the_problem_of_the_figures(scripts):
    goldberg = scripts("goldberg_2007")
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], 20)
    X = rng.standard_normal((40, 3)) + 0.4 * y[:, None]
    graph = csr.graphs.NeighborGraph(5, weights="heat").fit(X).graph_
    K, order = goldberg.gaussian(X, X, 2.0), rng.permutation(40)[:20]
    S = goldberg.covariance(K, goldberg.power_of_laplacian(graph, 2), 0.1, order)
    wrong = 0
    for fold in range(5):
        held, rest = order[fold::5], np.setdiff1d(order, order[fold::5])
        penalty = goldberg.LAM1 * csr.RKHSNorm() + 0.1 * csr.Laplacian(graph, normalized=True, power=2).on_function()
        solution = csr.Problem(csr.Kernel(K), csr.Squared(y[rest], rows=rest) + penalty).solve()
        wrong += int(np.sum(np.sign(solution.scores[held]) != y[held]))
    assert goldberg.fold_errors(S, y, order) == wrong > 0
