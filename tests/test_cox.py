"""Cox: what its texts say is what it computes, for both rules for ties; copies and pickles; events in words."""

import copy
import pickle

import numpy as np
import pytest

import cvxstructreg as csr

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT = RNG.integers(1, 8, N).astype(float), RNG.random(N) < 0.7
STRATA, WEIGHTS = RNG.integers(0, 2, N), RNG.choice([0.0, 0.5, 1.0, 3.0], N)
Z = RNG.normal(size=N)
RULES = [(ties, weights) for ties in ("breslow", "efron") for weights in (None, WEIGHTS)]


def stated(ties, s, strata):
    """The formulas of the docstring, one event after the other, and those for weights of one."""
    total = short = 0.0
    counted = EVENT & (s > 0)
    for i in np.flatnonzero(counted):
        at_risk = (TIME[i] <= TIME) & (strata == strata[i])
        tied = np.flatnonzero(counted & (TIME[i] == TIME) & (strata == strata[i]))
        S, D = np.sum(s[at_risk] * np.exp(Z[at_risk])), np.sum(s[tied] * np.exp(Z[tied]))
        if ties == "breslow":
            total += s[i] * (np.log(S) - Z[i] - np.log(s[i]))
            short += np.log(np.sum(np.exp(Z[at_risk]))) - Z[i]
        else:
            r, m = np.flatnonzero(tied == i)[0] / len(tied), np.mean(s[tied])
            total += m * np.log((S - r * D) / m) - s[i] * Z[i]
            short += np.log(S - r * D) - Z[i]
    return total, short


@pytest.mark.parametrize(("ties", "weights"), RULES)
@pytest.mark.parametrize("strata", [None, STRATA])
def test_the_stated_formulas_are_the_values(ties, weights, strata):
    loss = csr.Cox(TIME, event=EVENT, ties=ties, sample_weight=weights, strata=strata)
    s, groups = np.ones(N) if weights is None else weights, np.zeros(N) if strata is None else strata
    total, short = stated(ties, s, groups)
    assert loss.value(Z[:, None]) == pytest.approx(total, rel=1e-12)
    if weights is None:
        assert short == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize(("ties", "weights"), RULES)
def test_the_description_has_the_rule_in_use_and_weights_only_if_there_are_any(ties, weights):
    loss = csr.Cox(TIME, event=EVENT, ties=ties, sample_weight=weights)
    text = csr.Problem(csr.Linear(Z[:, None], intercept=False), loss + csr.Ridge()).describe()
    first = text.splitlines()[1]
    formulas = {
        ("breslow", False): "sum_(i: event) (log sum_(j at risk at t_i) exp(f_j) - f_i)",
        ("breslow", True): "sum_(i: event) s_i (log sum_(j at risk at t_i) s_j exp(f_j) - f_i - log s_i)",
        ("efron", False): "sum_(i: event) (log(S_i - r_i D_i) - f_i)",
        ("efron", True): "sum_(i: event) (m_i log((S_i - r_i D_i) / m_i) - s_i f_i)",
    }
    assert formulas[ties, weights is not None] in first and f"ties by {ties.capitalize()}" in first
    other = {"breslow": "Efron", "efron": "Breslow"}[ties]
    assert other not in first and ("s_j" in first or "s_i" in first) == (weights is not None)


def test_the_headlines_are_the_formulas():
    headline = csr.Cox.__doc__.splitlines()[0]
    assert headline.startswith(csr.Cox.formula) and csr.Cox.formula.endswith("- log s_i)")
    assert "sum_(i: event) (m_i log((S_i - r_i D_i) / m_i) - s_i f_i)" in csr.Cox.__doc__


@pytest.mark.parametrize("offset", [None, np.linspace(-1, 1, 600)])
def test_many_rows_can_be_copied_and_pickled_after_use(offset):
    loss = csr.Cox(np.exp(RNG.normal(size=600)), ties="efron", offset=offset)
    z = RNG.normal(size=(600, 1))
    gradient, product = loss.grad(z), loss.hessp(z, z)
    for again in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        np.testing.assert_array_equal(again.grad(z), gradient)
        np.testing.assert_array_equal(again.hessp(z, z), product)


def test_problems_and_solutions_of_many_rows_can_be_copied_and_pickled():
    X = RNG.normal(size=(600, 4))
    loss = csr.Cox(np.exp(X[:, 0] + RNG.normal(size=600)))
    for penalty in (csr.L1(), csr.Ridge(), csr.SLOPE.bh(4) + csr.L1()):
        solution = csr.Problem(csr.Linear(X, intercept=False), loss + penalty).solve()
        for again in (pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
            np.testing.assert_array_equal(again.coef, solution.coef)
            assert again.problem.solve().objective == pytest.approx(solution.objective, rel=1e-6)
    target = np.column_stack([loss.y[:, 0], np.ones(600)])
    model = csr.StructuredRegressor(csr.L1(), loss="cox").fit(X, target)
    np.testing.assert_array_equal(copy.deepcopy(model).predict(X), model.predict(X))


def test_events_in_words_get_a_remedy():
    with pytest.raises(ValueError, match=r'got dtype <U5; .* event = status == "dead"'):
        csr.Cox([1.0, 2.0], event=["dead", "alive"])
    with pytest.raises(ValueError, match=r"got 2; for several causes, pick one of them, such as event = cause == 2"):
        csr.Cox([1.0, 2.0], event=[1, 2])
    for target in (np.array([["1.0", "dead"], ["2.0", "alive"]]), np.array([[1.0, True], [2.0, False]], dtype=object)):
        with pytest.raises(TypeError, match=r"times and events must be numbers.*event = status == 'dead'"):
            csr.StructuredRegressor(csr.L1(), loss="cox").fit(np.eye(2), target)
