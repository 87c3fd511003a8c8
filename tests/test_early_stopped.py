"""The published algorithm with a stop chosen by cross-validation, and the ridge that its first iteration resembles."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg.estimators import EarlyStopped, FrequencyRidgeClassifier, GroupLassoClassifier

GROUPS = csr.Groups([[0, 1, 2], [1, 2, 3], [2, 4], [5, 6], [6, 7, 8, 9]], n_features=10, weights=[1, 2, 1, 1, 3])
COUNTS = np.array([1, 3, 4, 2, 1, 1, 4, 3, 3, 3])


def text(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.8, size=(n, 10)).astype(float)
    return X, np.where(X[:, 0] + X[:, 1] - X[:, 6] + 0.7 * rng.normal(size=n) > 0.8, "yes", "no")


def test_the_chosen_stop_is_the_published_algorithm_there():
    X, y = text()
    model = EarlyStopped(GROUPS, lam_group=2.0, lam_l1=0.1, rhos=[0.5, 5.0], stops=[1, 4], cv=3).fit(X, y)
    how = {"rho": model.best_rho_, "max_iter": model.best_stop_}
    plain = GroupLassoClassifier(GROUPS, lam_group=2.0, lam_l1=0.1, solver="sentence_admm", **how).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-12)
    assert model.n_iter_ == model.best_stop_ and model.certificate_.relative_gap == plain.certificate_.relative_gap
    assert [row.number for row in model.selected_groups()] == [row.number for row in plain.selected_groups()]


def test_scores_are_those_of_a_loop_by_hand():
    X, y = text(1)
    rhos, stops = [1.0, 20.0], [1, 3, 8]
    rows = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    model = EarlyStopped(GROUPS, lam_l1=0.3, rhos=rhos, stops=stops, cv=rows).fit(X, y)
    for r, rho in enumerate(rhos):
        for f, (train, test) in enumerate(rows):
            for s, stop in enumerate(stops):
                one = GroupLassoClassifier(GROUPS, lam_l1=0.3, solver="sentence_admm", rho=rho, max_iter=stop)
                one.fit(X[train], y[train])
                assert model.scores_[r, f, s] == one.score(X[test], y[test])
                assert model.n_selected_[r, f, s] == np.count_nonzero(one.coef_)
    assert model.mean_score_.max() == model.mean_score_[rhos.index(model.best_rho_), stops.index(model.best_stop_)]


def test_gaps_are_certified_at_every_stop():
    X, y = text(2)
    early = {"scoring": lambda model, X, y: -float(np.abs(model.coef_).sum())}
    model = EarlyStopped(GROUPS, lam_group=2.0, rhos=[2.0], stops=[1, 5, 400], cv=3, **early)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.GridEdgeWarning)
        model.fit(X, y)
    optimum = GroupLassoClassifier(GROUPS, lam_group=2.0, tol=1e-9).fit(X, y)
    above = model.certificate_.objective - optimum.objective_
    assert -1e-9 <= above <= model.certificate_.gap + 1e-9
    assert model.gaps_[0] > model.gaps_[1] > model.gaps_[2] and model.gaps_[2] < 1e-2


def test_edges_of_the_grid_warn():
    X, y = text(3)
    constant = {"scoring": lambda model, X, y: float(model.coef_[0, 0] ** 2)}  # prefers little shrinkage
    model = EarlyStopped(GROUPS, lam_group=1e-3, rhos=[0.01, 1.0, 100.0], stops=[1, 2], cv=2, **constant)
    with pytest.warns(csr.GridEdgeWarning, match="smallest rho, 0.01"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rhos": []}, "rhos must be"),
        ({"rhos": [1.0, -1.0]}, "positive numbers"),
        ({"stops": [0]}, "positive integers"),
        ({"stops": [1.5]}, "positive integers"),
        ({"stops": 5}, "positive integers"),
    ],
)
def test_bad_grids(params, message):
    with pytest.raises(ValueError, match=message):
        EarlyStopped(GROUPS, **params).fit(*text())


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="no option 'steps'"):
        EarlyStopped(GROUPS, solver_options={"steps": 3}).fit(*text())


def test_the_first_iteration_is_the_frequency_ridge():
    X, y = text(4)
    ridge = FrequencyRidgeClassifier(GROUPS, lam=0.35, tol=1e-10).fit(X, y)
    np.testing.assert_array_equal(ridge.counts_, COUNTS)
    every = csr.Groups([g for g, c in zip(GROUPS, GROUPS.weights, strict=True) for _ in range(int(c))], n_features=10)
    how = {"solver": "sentence_admm", "rho": 0.7, "max_iter": 1, "solver_options": {"w_tol": 1e-9}}
    first = GroupLassoClassifier(every, lam_group=5.0, **how).fit(X, y)
    np.testing.assert_allclose(ridge.coef_, first.coef_, atol=1e-5)


def test_members_count_squared_and_ungrouped_features_once():
    groups = csr.Groups([[0, 1], [1]], n_features=3, member_weights=[[np.sqrt(2.0), 1.0], [3.0]])
    X, y = text(5)
    np.testing.assert_allclose(FrequencyRidgeClassifier(groups).fit(X[:, :3], y).counts_, [2.0, 10.0, 1.0])
    np.testing.assert_array_equal(FrequencyRidgeClassifier().fit(X, y).counts_, np.ones(10))
