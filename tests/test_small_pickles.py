"""Pickles of fitted models have no training data; predictions work, and the data bring the solution back."""

import copy
import io
import pickle

import numpy as np
import pytest

import cvxstructreg as csr

N, D = 400, 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=N)
LABELS = np.where(Y > 0, "up", "down")
CLASSES = np.digitize(Y, [-0.7, 0.7])
GROUPS = csr.Groups([list(range(i, i + 3)) for i in range(0, D, 3)])
CHAIN = csr.Graph.from_edges([(i, i + 1) for i in range(D - 1)], n_nodes=D)
SURVIVAL = np.column_stack([np.exp(-Y), RNG.random(N) < 0.7])
FEW = np.where(np.arange(N) % 10 == 0, Y > 0, -1)
WEIGHTS = RNG.uniform(0.5, 2.0, size=N)
BOTH = csr.GroupLasso(GROUPS) + csr.L1()
CASES = {
    "network": (csr.FeatureNetworkClassifier(CHAIN), LABELS, {}),
    "network of numbers": (csr.FeatureNetworkRegressor(CHAIN), Y, {"sample_weight": WEIGHTS}),
    "one against the rest": (csr.StructuredClassifier(csr.L1(), loss="squared_hinge"), CLASSES, {}),
    "elastic net": (csr.LaplacianElasticNetRegressor(CHAIN, lam1=5.0), Y, {}),
    "groups": (csr.GroupLassoClassifier(GROUPS, lam_group=3.0), CLASSES, {"sample_weight": WEIGHTS}),
    "sentence admm": (csr.GroupLassoClassifier(GROUPS, solver="sentence_admm", max_iter=20), LABELS, {}),
    "cox": (csr.StructuredRegressor(2.0 * csr.L1(), loss="cox"), SURVIVAL, {}),
    "tuned": (csr.LaplacianElasticNetClassifierCV(CHAIN, n_strengths=5, cv=2), LABELS, {}),
    "tuned ratio": (csr.GroupLassoRegressorCV(GROUPS, n_strengths=4, cv=2, ratios=[0.0, 0.5, 1.0]), Y, {}),
    "tuned generic": (csr.StructuredRegressorCV(BOTH, n_strengths=4, cv=2, ratios=[0.5, 1.0]), Y, {}),
}
KERNELS = {
    "mixed graph": (csr.MixedGraphClassifier("knn", graph_options={"n_neighbors": 4}), FEW, {}),
    "pairs": (csr.DissimilaritySVC([(1, 2), (3, 4)]), FEW, {}),
}


def fitted(name, rows=N):
    model, y, more = {**CASES, **KERNELS}[name]
    more = {key: value[:rows] for key, value in more.items()}
    return copy.deepcopy(model).fit(X[:rows], y[:rows], **more), y[:rows], more


@pytest.mark.filterwarnings("ignore::cvxstructreg.GridEdgeWarning")
@pytest.mark.parametrize("name", [*CASES, *KERNELS])
def test_a_pickle_predicts_and_the_data_bring_the_solution_back(name):
    rows = N if name in CASES else 80
    model, y, more = fitted(name, rows)
    before, expected = model.solution_, model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), expected)
    assert again.objective_ == model.objective_ and again.certificate_.gap == model.certificate_.gap
    with pytest.raises(AttributeError, match=r"attach_data\(X, y\) with the data of fit"):
        _ = again.solution_
    assert not hasattr(again, "solution_")
    twice = pickle.loads(pickle.dumps(again))  # without data, a second pickle keeps what the first one kept
    assert twice.attach_data(X[:rows], y, **more) is twice
    after = twice.solution_
    one, other = (found[0] if isinstance(found, tuple) else found for found in (before, after))
    assert np.array_equal(one.coef, other.coef) and other.status == one.status
    assert other.problem.describe() == one.problem.describe()
    assert csr.certify(other.problem, other, search=False).objective == pytest.approx(one.objective, rel=1e-12)


@pytest.mark.filterwarnings("ignore::cvxstructreg.GridEdgeWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_size_of_a_pickle_does_not_grow_with_the_rows(name):
    small, large = (len(pickle.dumps(fitted(name, rows)[0])) for rows in (N // 4, N))
    assert large < 8 * X.nbytes / 10 and abs(large - small) < 2_000  # a pickle with the data has about 100 kB


def test_genes_in_a_small_file():
    """20,000 columns of which few are selected, as in studies of gene expression."""
    genes = RNG.normal(size=(100, 20_000))
    model = csr.LaplacianElasticNetRegressor(lam1=40.0).fit(genes, genes[:, :5].sum(axis=1))
    file = io.BytesIO()
    pickle.dump(model, file)
    assert genes.nbytes == 16_000_000 and file.tell() < 1_000_000


def test_other_data_are_refused():
    again = pickle.loads(pickle.dumps(fitted("network of numbers")[0]))
    with pytest.raises(ValueError, match=r"not the data of fit.*pass the same X and y.*sample_weight="):
        again.attach_data(X, Y)  # the weights are missing
    with pytest.raises(ValueError, match="not the data of fit"):
        again.attach_data(X[::-1], Y, sample_weight=WEIGHTS)
    assert not hasattr(again, "solution_")
    assert again.attach_data(X, Y, sample_weight=WEIGHTS).solution_.problem.model.n_rows == N


def test_copies_keep_the_data():
    model = fitted("network")[0]
    for twin in (copy.copy(model), copy.deepcopy(model)):
        assert np.array_equal(twin.solution_.coef, model.solution_.coef)
        assert twin.attach_data(X, LABELS) is twin
    assert copy.deepcopy(model).solution_.problem is not model.solution_.problem


def test_paths_and_unknown_names_say_what_to_do():
    model = pickle.loads(pickle.dumps(csr.LaplacianElasticNetClassifierCV(n_strengths=5, cv=2).fit(X, LABELS)))
    with pytest.raises(AttributeError, match=r"path\(X, y\)"):
        _ = model.path_
    with pytest.raises(AttributeError, match="has no attribute 'solutions_'"):
        _ = model.solutions_
    with pytest.raises(AttributeError, match="has no attribute 'solution_'"):
        _ = csr.FeatureNetworkClassifier().solution_
