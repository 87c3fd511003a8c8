"""Strengths of other libraries: the same optimum when solved there and here."""

import importlib

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.svm import SVC

from cvxstructreg import (
    L1,
    Cox,
    Gamma,
    Graph,
    GroupLasso,
    Groups,
    Huber,
    Linear,
    Logistic,
    MultiTask,
    Poisson,
    Problem,
    Quantile,
    Ridge,
    Squared,
    Tweedie,
    conventions,
)
from cvxstructreg.estimators import (
    FeatureNetworkClassifier,
    GroupLassoClassifier,
    GroupLassoRegressor,
    LaplacianElasticNetClassifier,
    LaplacianElasticNetRegressor,
    MixedGraphClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
TARGET = X @ [1.0, 0.5, 0.0, -1.0, 0.0, 0.0] + 0.3 * RNG.normal(size=60)
LABEL = (TARGET + RNG.normal(size=60) > 0).astype(int)
N = len(X)
# scikit-learn before 1.8 looks at l1_ratio only when told so
ELASTIC_NET = {"penalty": "elasticnet"} if sklearn.__version__ < "1.8" else {}


def fitted(loss, strengths):
    objective = loss + strengths.l1 * L1() + strengths.ridge * Ridge()
    return Problem(Linear(X), objective).solve(tol=1e-12)


def same(ours, coef, intercept, atol=1e-5):
    np.testing.assert_allclose(ours.coef, np.ravel(coef), atol=atol)
    np.testing.assert_allclose(ours.intercept, np.ravel(intercept)[0], atol=atol)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("C", [0.2, 3.0])
def test_logistic_regression_of_scikit_learn(C, l1_ratio):
    peer = LogisticRegression(C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-9, max_iter=20_000, **ELASTIC_NET)
    peer.fit(X, LABEL)
    strengths = conventions.from_sklearn_logistic(C, l1_ratio)
    same(fitted(Logistic(LABEL), strengths), peer.coef_, peer.intercept_)
    back = conventions.to_sklearn_logistic(*strengths)
    assert back == pytest.approx({"C": C, "l1_ratio": l1_ratio})


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
def test_lasso_and_elastic_net_of_scikit_learn(l1_ratio):
    weights = np.linspace(0.5, 2.0, N)
    strengths = conventions.from_mean_loss(0.1, N, l1_ratio)
    peer = ElasticNet(alpha=0.1, l1_ratio=l1_ratio, tol=1e-12, max_iter=10_000).fit(X, TARGET)
    same(fitted(Squared(TARGET), strengths), peer.coef_, peer.intercept_)
    if l1_ratio == 1:
        lasso = Lasso(alpha=0.1, tol=1e-12).fit(X, TARGET)
        same(fitted(Squared(TARGET), strengths), lasso.coef_, lasso.intercept_)
    weighted = ElasticNet(alpha=0.1, l1_ratio=l1_ratio, tol=1e-12).fit(X, TARGET, sample_weight=weights)
    strengths = conventions.from_mean_loss(0.1, weights.sum(), l1_ratio)  # n is the sum of the weights
    same(fitted(Squared(TARGET, sample_weight=weights), strengths), weighted.coef_, weighted.intercept_)
    assert conventions.to_mean_loss(*strengths, weights.sum()) == pytest.approx({"alpha": 0.1, "l1_ratio": l1_ratio})


def test_ridge_of_scikit_learn():
    strengths = conventions.from_sklearn_ridge(3.0)
    peer = SklearnRidge(alpha=3.0).fit(X, TARGET)
    same(fitted(Squared(TARGET), strengths), peer.coef_, peer.intercept_)
    assert conventions.to_sklearn_ridge(strengths.ridge) == {"alpha": 3.0}


def test_losses_of_means_of_scikit_learn():
    counts, amounts = RNG.poisson(np.exp(0.5 * TARGET)), np.exp(0.5 * TARGET)
    claims = np.where(amounts > 1.0, amounts, 0.0)
    weight = np.linspace(0.5, 2.0, N)
    for peer, loss in (
        (PoissonRegressor(alpha=0.1), Poisson(counts, sample_weight=weight)),
        (GammaRegressor(alpha=0.1), Gamma(amounts, sample_weight=weight)),
        (TweedieRegressor(power=1.5, link="log", alpha=0.1), Tweedie(claims, sample_weight=weight)),
    ):
        peer.set_params(tol=1e-10, max_iter=10_000).fit(X, loss.y[:, 0], sample_weight=weight)
        same(fitted(loss, conventions.from_mean_loss(0.1, weight.sum(), 0.0)), peer.coef_, peer.intercept_, 1e-4)


def test_quantile_regression_of_scikit_learn():
    peer = QuantileRegressor(quantile=0.8, alpha=0.05).fit(X, TARGET)
    strength = conventions.from_mean_loss(0.05, N).l1
    problem = Problem(Linear(X), Quantile(TARGET, quantile=0.8) + strength * L1())
    ours = problem.solve()
    assert ours.status == "optimal"
    assert abs(problem.value(peer.coef_, peer.intercept_) - ours.objective) <= 2e-6 * ours.objective


def test_strengths_of_statsmodels():
    """-1/n loglike + alpha (...), written out: the optimum of ours is a stationary point."""
    counts = RNG.poisson(np.exp(0.5 * TARGET))
    strengths = conventions.from_statsmodels(alpha=0.2, nobs=N, L1_wt=0.25)
    ours = fitted(Poisson(counts), strengths)
    mean = np.exp(X @ ours.coef + ours.intercept)
    gradient = X.T @ (mean - counts) / N + 0.2 * 0.75 * ours.coef
    held = ours.coef != 0
    np.testing.assert_allclose(gradient[held], -0.2 * 0.25 * np.sign(ours.coef[held]), atol=1e-5)
    assert np.all(np.abs(gradient) <= 0.2 * 0.25 + 1e-5)


def test_support_vector_machine_of_scikit_learn():
    peer = SVC(C=0.8, kernel="rbf", gamma=0.3, tol=1e-10).fit(X, LABEL)
    model = MixedGraphClassifier(**conventions.from_sklearn_svc(0.8), gamma=0.3, tol=1e-9).fit(X, LABEL)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)
    assert conventions.to_sklearn_svc(model.lam1) == pytest.approx({"C": 0.8})
    assert conventions.from_sklearn_svc(0.8, N)["lam1"] == pytest.approx(model.lam1 / N)
    assert conventions.to_sklearn_svc(model.lam1 / N, N) == pytest.approx({"C": 0.8})


def test_estimators_take_the_strengths():
    peer = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, LABEL)
    beta = conventions.from_sklearn_logistic(0.5).ridge
    model = FeatureNetworkClassifier(beta=beta, tol=1e-12).fit(X, LABEL)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    lasso = Lasso(alpha=0.1, tol=1e-12).fit(X, TARGET)
    sparse = LaplacianElasticNetRegressor(lam1=conventions.from_mean_loss(0.1, N).l1, tol=1e-12).fit(X, TARGET)
    np.testing.assert_allclose(sparse.coef_, lasso.coef_, atol=1e-6)


def test_round_trips():
    assert conventions.to_glum(**conventions.from_glum(0.3, 50, 0.4), n=50) == pytest.approx(
        {"alpha": 0.3, "l1_ratio": 0.4}
    )
    assert conventions.to_skglm_group_lasso(**conventions.from_skglm_group_lasso(0.3, 50), n=50) == {"alpha": 0.3}
    for scale in ("group_size", "none"):
        there = conventions.to_group_lasso(**conventions.from_group_lasso(0.3, 0.1, 50, scale), n=50)
        assert there == pytest.approx({"group_reg": 0.3, "l1_reg": 0.1, "scale_reg": scale})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conventions.from_sklearn_logistic(0.0), "C must be positive, got 0.0"),
        (lambda: conventions.from_sklearn_logistic(1.0, 2.0), "between 0 and 1"),
        (lambda: conventions.from_mean_loss(-1.0, 10), "alpha must be a finite number of at least 0"),
        (lambda: conventions.from_mean_loss(1.0, "10"), "n must be a finite number"),
        (lambda: conventions.to_mean_loss(0.0, 0.0, 10), "both strengths are zero"),
        (lambda: conventions.from_group_lasso(1.0, 0.0, 10, "inverse_group_size"), "scale_reg must be"),
        (lambda: conventions.to_group_lasso(1.0, 0.0, 10, "size"), "group_weights must be"),
    ],
)
def test_bad_strengths(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def glum_agrees(glum):
    graph = Graph.from_edges([(0, 1), (1, 2), (3, 4)], n_nodes=6)
    common = {"P2": graph.laplacian().toarray(), "alpha": 0.1, "l1_ratio": 0.3, "gradient_tol": 1e-10}
    strengths = conventions.from_glum(0.1, N, 0.3)
    for family, y, estimator in [
        ("normal", TARGET, LaplacianElasticNetRegressor),
        ("binomial", LABEL, LaplacianElasticNetClassifier),
    ]:
        peer = glum.GeneralizedLinearRegressor(family=family, **common).fit(X, y)
        ours = estimator(graph, normalized=False, tol=1e-12, **strengths).fit(X, y)
        np.testing.assert_allclose(np.ravel(ours.coef_), peer.coef_, atol=1e-4)

    counts, exposure = RNG.poisson(3.0 * np.exp(0.3 * TARGET)), np.full(N, 3.0)
    amounts = np.exp(0.5 * TARGET)
    for family, y, weight in [
        ("poisson", counts, None),
        ("poisson", counts / exposure, exposure),
        ("gamma", amounts, None),
        ("gamma", amounts, np.linspace(0.5, 2.0, N)),
        ("tweedie (1.5)", np.where(amounts > 1.0, amounts, 0.0), None),
    ]:
        offset = 0.1 * X[:, 0]
        peer = glum.GeneralizedLinearRegressor(family=family, link="log", alpha=0.1, l1_ratio=0.5, gradient_tol=1e-10)
        peer.fit(X, y, sample_weight=weight, offset=offset)
        loss, n = conventions.glum_loss(family, y, weight, offset)
        same(fitted(loss, conventions.from_mean_loss(0.1, n, 0.5)), peer.coef_, peer.intercept_, atol=1e-4)


def skglm_agrees(skglm):
    strengths = conventions.from_mean_loss(0.05, N)
    peer = skglm.SparseLogisticRegression(alpha=0.05, tol=1e-10).fit(X, LABEL)
    same(fitted(Logistic(LABEL), strengths), peer.coef_, peer.intercept_, atol=1e-4)
    peer = skglm.GroupLasso(groups=[2, 3, 1], alpha=0.2, tol=1e-10).fit(X, TARGET)
    groups = [[0, 1], [2, 3, 4], [5]]
    ours = GroupLassoRegressor(groups, **conventions.from_skglm_group_lasso(0.2, N), tol=1e-12).fit(X, TARGET)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-4)


def celer_agrees(celer):
    peer = celer.LogisticRegression(C=0.3, tol=1e-10, fit_intercept=False).fit(X, LABEL)
    strengths = conventions.from_sklearn_logistic(0.3, l1_ratio=1.0)
    ours = Problem(Linear(X, intercept=False), Logistic(LABEL) + strengths.l1 * L1()).solve(tol=1e-12)
    np.testing.assert_allclose(ours.coef, peer.coef_[0], atol=1e-4)
    peer = celer.Lasso(alpha=0.1, tol=1e-12).fit(X, TARGET)
    same(fitted(Squared(TARGET), conventions.from_mean_loss(0.1, N)), peer.coef_, peer.intercept_, atol=1e-4)


def group_lasso_agrees(group_lasso):
    peer = group_lasso.GroupLasso(
        groups=[0, 0, 1, 1, 1, 2], group_reg=0.05, l1_reg=0.02, n_iter=3_000, tol=1e-8, supress_warning=True
    ).fit(X, TARGET)
    strengths = conventions.from_group_lasso(0.05, 0.02, N)
    ours = GroupLassoRegressor([[0, 1], [2, 3, 4], [5]], **strengths, tol=1e-12).fit(X, TARGET)
    np.testing.assert_allclose(ours.coef_, peer.coef_[:, 0], atol=1e-4)
    classes = np.digitize(TARGET, [-0.5, 0.5])
    peer = group_lasso.LogisticGroupLasso(
        groups=[0, 0, 1, 1, 1, 2], group_reg=0.01, l1_reg=0.004, n_iter=3_000, tol=1e-8, supress_warning=True
    ).fit(X, classes)
    strengths = conventions.from_group_lasso(0.01, 0.004, N)
    ours = GroupLassoClassifier([[0, 1], [2, 3, 4], [5]], **strengths, tol=1e-12).fit(X, classes)
    np.testing.assert_allclose(ours.coef_.T, peer.coef_, atol=2e-3)  # the peer converges slowly


@pytest.mark.slow  # each datafit is compiled
@pytest.mark.filterwarnings("default")  # those of other libraries
def test_datafits_of_skglm_are_means_of_our_losses():
    skglm = pytest.importorskip("skglm")
    from skglm import datafits, penalties, solvers
    from skglm.utils.jit_compilation import compiled_clone

    counts, amounts = RNG.poisson(np.exp(0.5 * TARGET)), np.exp(0.5 * TARGET)
    times, events = np.ceil(9.0 * np.exp(-TARGET)), np.arange(N) % 3 > 0
    survival = np.column_stack([times, events.astype(float)])
    cases = [
        (datafits.Poisson(), counts.astype(float), Poisson(counts), solvers.ProxNewton),
        (datafits.Gamma(), amounts, Gamma(amounts), solvers.ProxNewton),
        (datafits.Huber(0.5), TARGET, Huber(TARGET, delta=0.5), solvers.AndersonCD),
        (datafits.Cox(use_efron=False), survival, Cox(times, event=events), solvers.ProxNewton),
        (datafits.Cox(use_efron=True), survival, Cox(times, event=events, ties="efron"), solvers.ProxNewton),
    ]
    columns, strength = np.asfortranarray(X), conventions.from_mean_loss(0.05, N).l1
    for given, y, loss, solver in cases:
        datafit, penalty = compiled_clone(given), compiled_clone(penalties.L1(0.05))
        datafit.initialize(columns, y)
        coef = solver(tol=1e-10, fit_intercept=False).solve(columns, y, datafit, penalty)[0]
        ours = Problem(Linear(X, intercept=False), loss + strength * L1()).solve(tol=1e-10)
        np.testing.assert_allclose(ours.coef, coef, atol=1e-4)
    several = np.column_stack([TARGET, X[:, 0] - X[:, 1]])
    peer = skglm.MultiTaskLasso(alpha=0.05, tol=1e-10, fit_intercept=False).fit(X, several)
    rows = GroupLasso(Groups([[j] for j in range(6)], n_features=6))
    ours = Problem(Linear(X, intercept=False), MultiTask(several) + strength * rows).solve(tol=1e-10)
    np.testing.assert_allclose(ours.coef.T, peer.coef_, atol=1e-4)


@pytest.mark.slow  # the datafit is compiled
@pytest.mark.filterwarnings("default")  # those of other libraries
def test_the_pinball_datafit_of_skglm_is_our_quantile_loss():
    """It is a sum over the rows like ours, unlike the other datafits, with the same quantile."""
    pytest.importorskip("skglm")
    from skglm import penalties
    from skglm.experimental.pdcd_ws import PDCD_WS
    from skglm.experimental.quantile_regression import Pinball
    from skglm.utils.jit_compilation import compiled_clone

    given, loss, columns = Pinball(0.8), Quantile(TARGET, quantile=0.8), np.asfortranarray(X)
    scores = X @ np.linspace(-1.0, 1.0, X.shape[1])
    assert given.value(TARGET, None, scores) == pytest.approx(loss(scores))
    np.testing.assert_allclose(given.prox(scores, 0.7, TARGET), loss.prox(scores[:, None], 0.7)[:, 0], atol=1e-12)
    datafit, penalty = compiled_clone(given), compiled_clone(penalties.L1(3.0))
    solver = PDCD_WS(tol=1e-6, fit_intercept=False, max_iter=1000, max_epochs=10_000)
    coef = solver.solve(columns, TARGET, datafit, penalty)[0]
    problem = Problem(Linear(X, intercept=False), loss + 3.0 * L1())
    assert problem.value(coef) == pytest.approx(problem.solve(tol=1e-9).objective, rel=1e-5)


PEERS = {"glum": glum_agrees, "skglm": skglm_agrees, "celer": celer_agrees, "group_lasso": group_lasso_agrees}


@pytest.mark.filterwarnings("default")  # those of other libraries
def test_peers_that_are_installed_agree():
    compared = []
    for name, agrees in PEERS.items():
        try:
            peer = importlib.import_module(name)
        except ImportError:
            continue
        agrees(peer)
        compared.append(name)
    if not compared:
        pytest.skip(f"none of {', '.join(PEERS)} is installed")
