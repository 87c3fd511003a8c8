"""Losses beyond classification: certified with every penalty, sound, independent of units, and strict about input."""

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.certificates.null_point import null_point

N, D = 40, 9
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, D))
SCORES = X[:, :4] @ [0.6, -0.5, 0.4, 0.3] + 0.3
NOISE, OFFSET = RNG.normal(size=N), 0.5 * RNG.normal(size=N)
EXPOSURE = RNG.uniform(0.5, 5.0, size=N)
COUNTS = RNG.poisson(EXPOSURE * np.exp(SCORES))
AMOUNTS = RNG.gamma(2.0, np.exp(SCORES) / 2.0)
CLAIMS = np.where(RNG.random(N) < 0.3, 0.0, AMOUNTS)
TIMES, EVENTS, STRATA = np.ceil(9.0 * RNG.exponential(np.exp(-SCORES))), RNG.random(N) < 0.7, np.arange(N) % 3
LABELS = (SCORES + NOISE > 0).astype(int)
WEIGHTS = np.where(np.arange(N) % 7 == 3, 0.0, RNG.uniform(0.5, 2.0, size=N))
LOSSES = {
    "Poisson": lambda: csr.Poisson(COUNTS, exposure=EXPOSURE),
    "Poisson, offset": lambda: csr.Poisson(COUNTS, sample_weight=WEIGHTS, offset=np.log(EXPOSURE)),
    "Gamma": lambda: csr.Gamma(AMOUNTS),
    "Gamma, offset": lambda: csr.Gamma(AMOUNTS, sample_weight=WEIGHTS, offset=OFFSET),
    "Tweedie": lambda: csr.Tweedie(CLAIMS, power=1.5),
    "Tweedie, offset": lambda: csr.Tweedie(CLAIMS, power=1.2, sample_weight=WEIGHTS, offset=OFFSET),
    "MultiTask": lambda: csr.MultiTask(np.column_stack([SCORES + NOISE, SCORES - NOISE]), task_weight=[1.0, 0.5]),
    "Cox": lambda: csr.Cox(TIMES, event=EVENTS),
    "Cox, Efron": lambda: csr.Cox(TIMES, event=EVENTS, ties="efron", sample_weight=WEIGHTS),
    "Cox, strata": lambda: csr.Cox(TIMES, event=EVENTS, ties="efron", strata=STRATA, offset=OFFSET),
    "Huber": lambda: csr.Huber(SCORES + NOISE, delta=0.5),
    "Huber, offset": lambda: csr.Huber(SCORES + NOISE, delta=0.5, sample_weight=WEIGHTS, offset=OFFSET),
    "Absolute": lambda: csr.Absolute(SCORES + NOISE),
    "Quantile": lambda: csr.Quantile(SCORES + NOISE, quantile=0.8),
    "Quantile, offset": lambda: csr.Quantile(SCORES + NOISE, quantile=0.3, sample_weight=WEIGHTS, offset=OFFSET),
    "Squared, offset": lambda: csr.Squared(SCORES + NOISE, offset=OFFSET),
    "Logistic, offset": lambda: csr.Logistic(LABELS, offset=OFFSET),
    "Hinge, offset": lambda: csr.Hinge(LABELS, offset=OFFSET),
    "SquaredHinge, offset": lambda: csr.SquaredHinge(LABELS, offset=OFFSET),
}
GROUPS = csr.Groups([[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 8], [0, 8]], n_features=D)
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
PENALTIES = {
    "L1": lambda: 2.0 * csr.L1(),
    "Ridge": lambda: 1.0 * csr.Ridge(),
    "overlapping groups": lambda: 1.5 * csr.GroupLasso(GROUPS) + 0.5 * csr.L1(),
    "fused": lambda: 1.0 * csr.FusedLasso(CHAIN) + 0.5 * csr.L1(),
    "bounds": lambda: csr.Box(-0.2, 0.3) + 0.1 * csr.Ridge(),
    "signs": lambda: csr.NonNegative(),
}


def tight_optimum(problem):
    """The optimum by CVXPY with Clarabel, to ten digits or so."""
    program = problem.to_cvxpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inaccurate solutions: the comparison below has a tolerance
        program.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10, max_threads=1)
    return float(program.value)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_with_every_penalty_is_certified_and_the_bound_is_sound(loss, penalty):
    model = csr.Linear(X, intercept=not loss.startswith("Cox"))
    problem = csr.Problem(model, LOSSES[loss]() + PENALTIES[penalty]())
    solution = problem.solve()
    assert solution.status == "optimal" and solution.certificate.relative_gap <= 1e-6
    optimum = tight_optimum(problem)
    assert solution.certificate.lower_bound <= optimum + 1e-7 * abs(optimum)
    assert abs(solution.objective - optimum) <= 2e-6 * abs(optimum)


@pytest.mark.parametrize("loss", ["Poisson", "Gamma", "Tweedie", "Huber", "Absolute", "Quantile", "Hinge, offset"])
@pytest.mark.parametrize("unit", [1e-4, 1e5])
def test_the_units_of_the_columns_do_not_matter(loss, unit):
    plain = csr.Problem(csr.Linear(X), LOSSES[loss]() + 2.0 * csr.L1()).solve()
    scaled = csr.Problem(csr.Linear(unit * X), LOSSES[loss]() + (2.0 * unit) * csr.L1()).solve()
    assert scaled.status == "optimal"
    assert abs(scaled.objective - plain.objective) <= 2e-6 * plain.objective


@pytest.mark.parametrize("unit", [1e-5, 1e4])
@pytest.mark.parametrize("penalty", ["L1", "overlapping groups", "fused"])
def test_the_units_of_the_targets_do_not_matter(penalty, unit):
    y = SCORES + NOISE
    for make in (
        lambda c: csr.Absolute(c * y),
        lambda c: csr.Quantile(c * y, quantile=0.8),
        lambda c: (1.0 / c) * csr.Huber(c * y, delta=0.5 * c),
    ):
        problems = [csr.Problem(csr.Linear(X), make(c) + PENALTIES[penalty]()) for c in (1.0, unit)]
        plain, scaled = (problem.solve() for problem in problems)
        assert scaled.status == "optimal"
        assert abs(scaled.objective / unit - plain.objective) <= 2e-6 * plain.objective


# offsets


@pytest.mark.parametrize("rows", [None, RNG.permutation(N)[:25]])
def test_an_offset_is_a_column_whose_weight_is_known(rows):
    """Fix the weight of one more column at 1 by bounds: the same optimum."""
    own = np.arange(N) if rows is None else rows
    lower, upper = np.append(np.full(D, -np.inf), 1.0), np.append(np.full(D, np.inf), 1.0)
    ridge = csr.Ridge(weights=np.append(np.ones(D), 0.0))
    for make in (csr.Logistic, csr.SquaredHinge):
        offset = csr.Problem(csr.Linear(X), make(LABELS[own], rows=rows, offset=OFFSET[own]) + csr.Ridge()).solve()
        column = csr.Problem(
            csr.Linear(np.column_stack([X, OFFSET])), make(LABELS[own], rows=rows) + ridge + csr.Box(lower, upper)
        ).solve()
        np.testing.assert_allclose(offset.coef, column.coef[:D], atol=1e-3)
        assert abs(offset.objective - column.objective) <= 2e-6 * offset.objective


def test_an_offset_of_a_regression_moves_the_targets():
    y, z = SCORES + NOISE, RNG.normal(size=N)
    for kind in (csr.Squared, csr.Huber, csr.Absolute, csr.Quantile):
        assert kind(y, offset=OFFSET).value(z) == pytest.approx(kind(y - OFFSET).value(z), rel=1e-12)


def test_an_exposure_is_an_offset():
    z = RNG.normal(size=N)
    by_exposure, by_offset = csr.Poisson(COUNTS, exposure=EXPOSURE), csr.Poisson(COUNTS, offset=np.log(EXPOSURE))
    assert by_exposure.value(z) == pytest.approx(by_offset.value(z), rel=1e-12)
    u = by_exposure.grad(z)
    assert by_exposure.conj(u) == pytest.approx(by_offset.conj(u), rel=1e-12)


def test_losses_with_an_offset_are_of_their_class_and_can_be_copied_and_pickled():
    loss = csr.Hinge(LABELS, offset=OFFSET)
    z = RNG.normal(size=(N, 1))
    assert isinstance(loss, csr.Hinge) and not loss.can("hinges") and loss.can("kinks", "conj")
    for twin in (copy.copy(loss), copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert type(twin) is type(loss) and twin.value(z) == loss.value(z)
    assert loss.without_offset.can("hinges") and loss.without_offset.value(z + loss.offset) == loss.value(z)
    assert csr.Hinge(LABELS, offset=np.zeros(N)).can("hinges")


def test_rows_of_one_class_need_an_offset():
    ones = np.ones(N, dtype=int)
    for kind in (csr.Logistic, csr.Hinge, csr.SquaredHinge):
        with pytest.raises(ValueError, match="only one class"):
            kind(ones)
        problem = csr.Problem(csr.Linear(X, intercept=False), kind(ones, offset=OFFSET) + csr.Ridge())
        assert problem.solve().status == "optimal"
    with pytest.warns(csr.NoMinimiserWarning):
        diverging = csr.Problem(csr.Linear(X), csr.Logistic(ones, offset=OFFSET) + csr.Ridge()).solve(max_iter=20)
    assert diverging.status == "no_minimiser"


def test_several_classes_with_an_offset_are_certified_with_every_penalty():
    classes, offset = np.digitize(SCORES + NOISE, [-0.5, 0.8]), 0.5 * RNG.normal(size=(N, 3))
    for kind in (csr.Multinomial, csr.MulticlassHinge):
        for penalty in ("L1", "overlapping groups", "fused"):
            problem = csr.Problem(csr.Linear(X), kind(classes, offset=offset) + PENALTIES[penalty]())
            solution, optimum = problem.solve(), tight_optimum(problem)
            assert solution.status == "optimal"
            assert solution.certificate.lower_bound <= optimum + 1e-7 * optimum


def test_describe_states_offset_and_convention():
    text = csr.Problem(csr.Linear(X), csr.Poisson(COUNTS, offset=OFFSET) + csr.L1()).describe()
    assert "plus the offset" in text and "half the Poisson deviance" in text


# known answers


def test_the_limits_of_tweedie_are_poisson_and_gamma():
    z = RNG.normal(size=N)
    counts = np.maximum(COUNTS, 1)
    assert csr.Tweedie(counts, power=1.0 + 1e-7).value(z) == pytest.approx(csr.Poisson(counts).value(z), rel=1e-5)
    assert csr.Tweedie(AMOUNTS, power=2.0 - 1e-7).value(z) == pytest.approx(csr.Gamma(AMOUNTS).value(z), rel=1e-5)


def test_losses_of_means_survive_huge_scores():
    z = np.full((N, 1), 1e4)
    for loss in (csr.Poisson(COUNTS), csr.Gamma(AMOUNTS), csr.Tweedie(CLAIMS, sample_weight=WEIGHTS)):
        for point in (z, -z):
            assert loss.value(point) > 0 and np.isfinite(loss.grad(point)).all()
            assert np.isfinite(loss.hess_diag(point)).all()
            assert np.isfinite(loss.prox(point, 3.0)).all()
            value, gradient, curvature = loss.derivatives(point)
            assert value == loss.value(point)
            np.testing.assert_allclose(gradient, loss.grad(point), rtol=1e-12)
            np.testing.assert_allclose(curvature, loss.hess_diag(point), rtol=1e-12)


def test_groups_of_one_feature_select_features_for_all_tasks():
    y = np.column_stack([X[:, 0], 2.0 * X[:, 0] + X[:, 1], -X[:, 1]]) + 0.1 * RNG.normal(size=(N, 3))
    rows = csr.GroupLasso(csr.Groups([[j] for j in range(D)], n_features=D))
    solution = csr.Problem(csr.Linear(X), csr.MultiTask(y) + 8.0 * rows).solve()
    assert solution.status == "optimal"
    norms = np.linalg.norm(solution.coef, axis=1)
    assert (norms[:2] > 0.5).all() and not norms[2:].any()


def test_constant_scores_are_quantiles_medians_and_log_rates():
    y = np.array([1.0, 2.0, 4.0, 8.0, 100.0])
    none = np.zeros((5, 1))
    for loss, expected in (
        (csr.Absolute(y), 4.0),
        (csr.Quantile(y, quantile=0.3), 2.0),
        (csr.Quantile(y, quantile=0.99), 100.0),
        (csr.Gamma(y), np.log(23.0)),
        (csr.Tweedie(y, power=1.7), np.log(23.0)),
        (csr.Poisson(y.astype(int), exposure=[1.0, 1.0, 1.0, 1.0, 19.0]), np.log(115.0 / 23.0)),
    ):
        solution = csr.Problem(csr.Linear(none), loss + csr.Ridge()).solve()
        assert solution.intercept == pytest.approx(expected, abs=1e-4)
        assert loss.constants()[0] == pytest.approx(expected, abs=1e-12)


def test_counts_of_zero_on_one_side_have_no_minimiser():
    columns, counts = np.array([[0.0], [0.0], [1.0], [2.0]]), [2, 3, 0, 0]
    with pytest.warns(csr.NoMinimiserWarning):
        assert csr.Problem(csr.Linear(columns), csr.Poisson(counts)).solve().status == "no_minimiser"
    assert csr.Problem(csr.Linear(columns), csr.Poisson(counts) + 0.1 * csr.Ridge()).solve().status == "optimal"


def partial_likelihood(time, event, z, efron):
    """Minus the log partial likelihood by its definition, one event after the other."""
    total = 0.0
    for t in np.unique(time[event]):
        risk, dead = np.exp(z[time >= t]).sum(), event & (time == t)
        m = dead.sum()
        for number in range(m):
            total += np.log(risk - (number / m if efron else 0.0) * np.exp(z[dead]).sum())
        total -= z[dead].sum()
    return total


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_the_partial_likelihood_is_that_of_the_definition(ties):
    z = RNG.normal(size=N)
    by_stratum = [
        partial_likelihood(TIMES[s], EVENTS[s], z[s], ties == "efron") for s in (c == STRATA for c in range(3))
    ]
    assert csr.Cox(TIMES, event=EVENTS, ties=ties, strata=STRATA).value(z) == pytest.approx(sum(by_stratum), rel=1e-12)
    whole = partial_likelihood(TIMES, EVENTS, z, ties == "efron")
    assert csr.Cox(TIMES, event=EVENTS, ties=ties).value(z) == pytest.approx(whole, rel=1e-12)
    assert csr.Cox(TIMES, event=EVENTS, ties=ties).value(z + 1000.0) == pytest.approx(whole, rel=1e-9)


def test_repeated_rows_are_rows_of_weight_two():
    """With Breslow's ties; the constants of the two parametrisations differ, their gradients do not."""
    twice, z = np.repeat(np.arange(N), 2), RNG.normal(size=N)
    doubled = csr.Cox(TIMES[twice], event=EVENTS[twice]).grad(z[twice]).reshape(N, 2).sum(axis=1)
    weighted = csr.Cox(TIMES, event=EVENTS, sample_weight=np.full(N, 2.0)).grad(z)
    np.testing.assert_allclose(doubled, weighted, atol=1e-12)


def test_sums_over_risk_sets_are_those_of_the_given_scores():
    """They are kept for the last scores; an array may change in place, and copies may have other weights."""
    loss, z, p = csr.Cox(TIMES, event=EVENTS, ties="efron"), RNG.normal(size=(N, 1)), RNG.normal(size=(N, 1))
    kept = loss.hessp(z, p)
    z *= 0.5
    again = csr.Cox(TIMES, event=EVENTS, ties="efron")
    assert np.array_equal(loss.hessp(z, p), again.hessp(z, p)) and not np.array_equal(loss.hessp(z, p), kept)
    weighted = dataclasses.replace(loss, sample_weight=WEIGHTS)
    assert np.array_equal(weighted.grad(z), csr.Cox(TIMES, event=EVENTS, ties="efron", sample_weight=WEIGHTS).grad(z))


def test_huge_scores_keep_the_partial_likelihood_finite():
    z = 1e4 * np.random.default_rng(0).normal(size=N)  # drawn here, so that the order of tests does not matter
    for ties in ("breslow", "efron"):
        loss = csr.Cox(TIMES, event=EVENTS, ties=ties)
        u = loss.grad(z)
        assert np.isfinite(loss.value(z)) and np.isfinite(u).all() and np.isfinite(loss.hessp(z, z)).all()
        assert loss.value(z) + loss.conj(u) == pytest.approx(u @ z, rel=1e-9)


def test_a_covariate_that_orders_all_events_has_no_minimiser():
    time = np.array([1.0, 2.0, 3.0, 4.0])
    problem = csr.Problem(csr.Linear(-time[:, None], intercept=False), csr.Cox(time, event=[1, 1, 1, 0]))
    with pytest.warns(csr.NoMinimiserWarning):
        assert problem.solve().status == "no_minimiser"
    swapped = np.array([[-1.0], [-2.0], [-4.0], [-3.0]])
    problem = csr.Problem(csr.Linear(swapped, intercept=False), csr.Cox(time))
    assert problem.solve().status == "optimal"


# bad input


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: csr.Poisson([1, -2]), "at least 0, got -2; drop such rows"),
        (lambda: csr.Poisson([1, 0.5]), "whole counts, got 0.5; for rates pass the counts as y and exposure="),
        (lambda: csr.Poisson([1, np.nan]), "NaN"),
        (lambda: csr.Poisson([0, 0]), "all counts of positive weight are zero"),
        (lambda: csr.Poisson([0, 2], sample_weight=[1.0, 0.0]), "all counts of positive weight are zero"),
        (lambda: csr.Poisson([[1, 2], [3, 4]]), "one value for each row"),
        (lambda: csr.Poisson([1, 2], exposure=[1.0, 0.0]), "exposure must be positive, got 0; drop rows"),
        (lambda: csr.Poisson([1, 2], exposure=[1.0, np.inf]), "exposure contains NaN or infinite"),
        (lambda: csr.Poisson([1, 2], exposure=[1.0]), "one number for each of the 2 counts"),
        (lambda: csr.Gamma([1.0, 0.0]), "must be positive, got 0; use Tweedie"),
        (lambda: csr.Gamma([1.0, -1.0]), "must be positive, got -1; use Squared"),
        (lambda: csr.Tweedie([1.0, -1.0]), "must be nonnegative, got -1; use Squared"),
        (lambda: csr.Tweedie([1.0, 0.0], power=1), "strictly between 1 and 2, got 1; use Poisson"),
        (lambda: csr.Tweedie([1.0, 0.0], power=2.0), "use Gamma"),
        (lambda: csr.Tweedie([1.0, 0.0], power=3.0), "not convex"),
        (lambda: csr.Tweedie([0.0, 0.0]), "all values of positive weight are zero"),
        (lambda: csr.MultiTask([1.0, 2.0]), r"one column for each task, got shape \(2,\); use Squared"),
        (lambda: csr.MultiTask([[1.0, 2.0]], task_weight=[1.0]), "one number for each of the 2 tasks"),
        (lambda: csr.MultiTask([[1.0, 2.0]], task_weight=[1.0, 0.0]), "task_weight must be positive"),
        (lambda: csr.Cox([1.0, np.nan]), "1 of the times y are NaN or infinite; drop these rows, or censor them"),
        (lambda: csr.Cox([1.0, -1.0]), "nonnegative, got -1; measure them from the entry"),
        (lambda: csr.Cox([[1.0, 0.0]]), "pass events as event="),
        (lambda: csr.Cox([1.0, 2.0], event=[1]), "one entry for each of the 2 times"),
        (lambda: csr.Cox([1.0, 2.0], event=[1, 2]), "True or False"),
        (lambda: csr.Cox([1.0, 2.0], event=[0, 0]), "no event of positive weight"),
        (lambda: csr.Cox([1.0, 2.0], event=[1, 0], sample_weight=[0.0, 1.0]), "no event of positive weight"),
        (lambda: csr.Cox([1.0, 2.0], ties="exact"), "ties must be 'breslow' or 'efron', got 'exact'"),
        (lambda: csr.Cox([1.0, 2.0], strata=[1]), "one label for each of the 2 times"),
        (lambda: csr.Problem(csr.Linear(X), csr.Cox(TIMES)), "use a model without one, Linear.*intercept=False"),
        (lambda: csr.Quantile([1.0], quantile=1.0), "strictly between 0 and 1, got 1"),
        (lambda: csr.Quantile([1.0], quantile=90), "use 0.9 for the 90 % quantile"),
        (lambda: csr.Quantile([1.0], quantile=-0.1), "strictly between 0 and 1"),
        (lambda: csr.Quantile([1.0], quantile=[0.1, 0.9]), "quantile must be a single number"),
        (lambda: csr.Huber([1.0], delta=0.0), "delta must be positive and finite, got 0.0; use Absolute"),
        (lambda: csr.Huber([1.0], delta=np.inf), "Squared"),
        (lambda: csr.Huber([1.0], delta="1"), "delta must be a single number"),
        (lambda: csr.Absolute([np.inf]), "NaN or infinite"),
        (lambda: csr.Squared([1.0, 2.0], offset=[1.0]), r"offset must be one number for each label, of shape \(2,\)"),
        (lambda: csr.Squared([1.0, 2.0], offset=[1.0, np.nan]), "offset contains NaN"),
        (lambda: csr.Squared([1.0, 2.0], offset=["a", "b"]), "offset must be real numbers"),
        (lambda: csr.Multinomial([0, 1, 2], offset=[1.0, 2.0, 3.0]), "one number for each output"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_fista_starts_at_an_optimum_without_endless_steps():
    """Where the gradient is round-off, and the curvature of the loss has no bound."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    problem = csr.Problem(csr.Linear(X, intercept=False), csr.Poisson([3.0, 1.0, 30.0]))
    start = problem.solve("newton", tol=1e-12)
    with np.errstate(over="raise", invalid="raise"):
        solution = problem.solve("fista", warm_start=start, tol=1e-10)
    assert solution.status == "optimal"
    assert solution.n_iter <= 5


@pytest.mark.parametrize("t", [1e-3, 1.0, 1e8, 1e16, 1e20])
def test_the_prox_of_the_multinomial_loss_with_huge_steps(t):
    loss, v = csr.Multinomial([0, 2, 1], classes=[0, 1, 2]), np.array([[3.0, -1, 0], [50, 0, 0], [1e3, -1e3, 0]])
    x = loss.prox(v, t)
    assert np.abs(t * loss.grad(x) + x - v).max() <= 1e-13 * (1e3 + t)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_partial_likelihood_of_columns_far_from_zero(form):
    """It ignores constants, so dual points sum to zero; a sum of 1e-12 times a column of 8,440 raised the bound."""
    X = np.array([[8440.2939453125], [8443.33203125], [8442.6259765625]])
    loss = csr.Cox([4.0, 2.0, 1.0], event=[True, True, True], ties="efron")
    optimum = csr.Problem(csr.Linear(X - 8442.0, intercept=False), loss).solve(tol=1e-10)
    certificate = csr.certify(csr.Problem(csr.Linear(form(X), intercept=False), loss), [0.0], search=False)
    assert not certificate.lower_bound > optimum.objective * (1.0 + 1e-12)
    if form is np.asarray:  # dense columns are centred
        assert certificate.lower_bound > optimum.objective * (1.0 - 1e-9)


def test_rows_without_any_probability_have_a_dual_point_of_zero():
    loss = csr.Multinomial([0, 1, 2])
    u = np.array([[-2.0, 0.0, -1.0], [0.5, -0.5, 0.0], [0.0, 0.0, 0.0]])  # the first row leaves no probability
    found = loss.into_domain(u)
    np.testing.assert_allclose(found, [[0.0, 0.0, 0.0], [0.5, -0.5, 0.0], [0.0, 0.0, 0.0]])
    assert np.isfinite(loss.conj(found))


def test_a_copy_keeps_nothing_that_was_computed_from_other_fields() -> None:
    X = np.array([[1.0], [2.0], [-1.0], [0.5]])
    for offset in (None, [0.3, -0.2, 0.1, 0.0]):
        loss = csr.Logistic([1, 0, 1, 1], sample_weight=[1.0, 2.0, 3.0, 4.0], offset=offset)
        csr.Problem(csr.Linear(X), loss + csr.L1()).solve()
        changed = copy.copy(loss)
        object.__setattr__(changed, "sample_weight", 5.0 * loss.sample_weight)
        anew = csr.Logistic([1, 0, 1, 1], sample_weight=[5.0, 10.0, 15.0, 20.0], offset=offset)
        assert changed.value(np.zeros(4)) == pytest.approx(anew.value(np.zeros(4)))
        null, other = (null_point(csr.Problem(csr.Linear(X), each + csr.L1())) for each in (changed, anew))
        assert null.objective == pytest.approx(other.objective, rel=1e-12)
        np.testing.assert_allclose(null.b, other.b)
        plain = csr.Problem(csr.Linear(X), loss.without_offset + csr.L1())
        assert null_point(plain).with_zero_scores == pytest.approx(10.0 * np.log(2.0))
