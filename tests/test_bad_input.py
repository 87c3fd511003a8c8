"""Bad input: every kind is refused at once, with words that say what is wrong and what to do."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

NAN, INF = np.nan, np.inf
X = np.random.default_rng(0).normal(size=(6, 3))
Y = [0, 1, 0, 1, 0, 1]
KINDS = [0, 1, 2] * 2
GRAM = X @ X.T + np.eye(6)
GRAPH = csr.Graph.from_edges([(0, 1)], n_nodes=3)
LARGER = csr.Graph.from_edges([(0, 3)], n_nodes=4)
GROUPS = csr.Groups([[0, 1]], n_features=3)
LARGER_GROUPS = csr.Groups([[0], [1, 3]], n_features=4)
RIDGE = csr.Logistic(Y) + 0.1 * csr.Ridge()
PROBLEM = csr.Problem(csr.Linear(X), RIDGE)


def fit(objective, model=None, **options):
    return csr.Problem(csr.Linear(X) if model is None else model, objective).solve(**options)


def build(objective, model=None):
    return csr.Problem(csr.Linear(X) if model is None else model, objective)


def refused(cases):
    """Parametrise by (what is done, type of error, pattern of its message), named by their keys."""
    return pytest.mark.parametrize("action, error, message", list(cases.values()), ids=list(cases))


DESIGNS = {
    "nan": (lambda: csr.Linear([[1.0, NAN]]), ValueError, "X contains NaN or infinite values; impute or drop"),
    "inf": (lambda: csr.Linear([[1.0, INF]]), ValueError, "X contains NaN or infinite values"),
    "sparse nan": (lambda: csr.Linear(sp.csr_array([[NAN, 1.0]])), ValueError, "X contains NaN or infinite values"),
    "missing": (lambda: csr.Linear([[None, 1.0]]), ValueError, "X contains NaN or infinite values"),
    "one dimension": (lambda: csr.Linear([1.0, 2.0]), ValueError, r"X must be a matrix, got shape \(2,\); reshape"),
    "three dimensions": (lambda: csr.Linear(np.zeros((2, 2, 2))), ValueError, "X must be a matrix, got shape"),
    "ragged": (lambda: csr.Linear([[1.0, 2.0], [3.0]]), ValueError, "X must be a matrix, but its rows have different"),
    "no rows": (lambda: csr.Linear(np.zeros((0, 3))), ValueError, "at least one row and one column"),
    "no columns": (lambda: csr.Linear(np.zeros((3, 0))), ValueError, "at least one row and one column"),
    "complex": (lambda: csr.Linear([[1j]]), TypeError, "X must be real, got dtype complex128"),
    "sparse complex": (lambda: csr.Linear(sp.csr_array([[1j]])), TypeError, "X must be real, got dtype complex128"),
    "strings": (lambda: csr.Linear([["a", "b"]]), TypeError, "X must be numeric, got dtype"),
    "numbers as strings": (lambda: csr.Linear([["1", "2"]]), TypeError, "X must be numeric, got dtype"),
    "dates": (lambda: csr.Linear(np.array([["2020-01-01"]], "datetime64[D]")), TypeError, "X must be numeric"),
    "intercept": (lambda: csr.Linear(X, intercept=1), TypeError, "intercept must be True or False, got 1"),
    "gram not square": (lambda: csr.Kernel(X), ValueError, r"gram must be square .* got shape \(6, 3\)"),
    "gram asymmetric": (lambda: csr.Kernel([[1.0, 2.0], [0.0, 1.0]]), ValueError, "gram must be symmetric; symmetrise"),
    "gram nan": (lambda: csr.Kernel([[NAN]]), ValueError, "gram contains NaN or infinite values"),
    "gram indefinite": (
        lambda: fit(csr.Hinge(Y) + csr.RKHSNorm(), csr.Kernel(np.diag([1.0, 1, 1, 1, 1, -0.5]))),
        ValueError,
        r"gram must be positive semidefinite, but its smallest eigenvalue is -0.5 .* add at least 0.5 to its diagonal",
    ),
    "gram zero": (
        lambda: fit(csr.Hinge(Y) + csr.RKHSNorm(), csr.Kernel(np.zeros((6, 6)))),
        ValueError,
        "gram is zero everywhere",
    ),
}

LABELS = {
    "too few": (lambda: build(csr.Logistic([0, 1])), ValueError, "has 2 labels for 6 rows; .* rows="),
    "too many": (lambda: build(csr.Squared(np.zeros(7))), ValueError, "has 7 labels for 6 rows"),
    "unknown pair": (lambda: csr.Logistic([1, 2]), ValueError, r"labels \[1, 2\] are neither .* classes="),
    "words": (lambda: csr.Hinge(["no", "yes"]), ValueError, r"labels \['no', 'yes'\] are neither .* classes="),
    "three classes": (lambda: csr.SquaredHinge([0, 1, 2]), ValueError, r"labels \[0, 1, 2\] are neither"),
    "one class": (lambda: csr.Logistic([1, 1]), ValueError, r"y has only one class, \[1\]"),
    "one of two classes": (lambda: csr.Logistic(["a"] * 2, classes=("a", "b")), ValueError, "y has only one class"),
    "one class of many": (lambda: csr.Multinomial([1, 1]), ValueError, r"y has only one class, \[1\]"),
    "one class, hinge": (lambda: csr.MulticlassHinge([1, 1]), ValueError, r"y has only one class, \[1\]"),
    "nan": (lambda: csr.Logistic([0, 1, NAN]), ValueError, "y contains NaN .*labelled rows only.* rows="),
    "nan, float32": (lambda: csr.Logistic(np.array([0, NAN], "f4")), ValueError, "y contains NaN"),
    "nan of many": (lambda: csr.Multinomial([0, 1, NAN]), ValueError, "y contains NaN"),
    "nan, object": (lambda: csr.Multinomial(np.array([1, NAN], dtype=object)), ValueError, "y contains NaN"),
    "nan, targets": (lambda: csr.Squared([1.0, NAN]), ValueError, "y contains NaN"),
    "missing": (lambda: csr.Multinomial([0, None, 1]), TypeError, "y mixes NoneType and int; .* rows="),
    "mixed": (lambda: csr.Multinomial(np.array([0, "a"], dtype=object)), TypeError, "y mixes int and str"),
    "minus one": (lambda: csr.Multinomial([0, 1, -1]), ValueError, "contains the label -1.* rows="),
    "fractions": (
        lambda: csr.Multinomial([0.1, 0.2, 0.3]),
        ValueError,
        r"not integers; use Squared\(y\)",
    ),
    "not in classes": (lambda: csr.Logistic([0, 2], classes=(0, 1)), ValueError, r"labels \[2\] .* not in classes"),
    "not in many": (lambda: csr.Multinomial([0, 2], classes=(0, 1)), ValueError, r"labels \[2\] .* not in classes"),
    "absent class": (lambda: csr.Multinomial([0, 1], classes=(0, 1, 2)), ValueError, r"classes \[2\] have no example"),
    "three for two": (lambda: csr.Logistic([0, 1], classes=(0, 1, 2)), ValueError, "must be two different labels"),
    "same class twice": (lambda: csr.Logistic([0, 1], classes=(1, 1)), ValueError, "must be two different labels"),
    "classes repeat": (lambda: csr.Multinomial([0, 1], classes=(0, 1, 1)), ValueError, "classes must be distinct"),
    "number of classes": (lambda: csr.Multinomial([0, 1], classes=2), TypeError, "classes must be a sequence"),
    "string of classes": (lambda: csr.Logistic(["a", "b"], classes="ab"), TypeError, "classes must be a sequence"),
    "matrix": (lambda: csr.Logistic([[0, 1], [1, 0]]), ValueError, "y must be a vector of labels, got shape"),
    "number": (lambda: csr.Logistic(1), ValueError, "y must be a vector of labels, got shape"),
    "nothing": (lambda: csr.Logistic(None), ValueError, "y must be a vector of labels, got shape"),
    "empty": (lambda: csr.Logistic([]), ValueError, "y is empty"),
    "no targets": (lambda: csr.Squared([]), ValueError, "y is empty"),
    "no columns": (lambda: csr.Squared(np.zeros((3, 0))), ValueError, "y has no columns"),
    "words as targets": (lambda: csr.Squared(["a"]), TypeError, "y must be real numbers"),
    "complex targets": (lambda: csr.Squared([1j]), TypeError, "y must be real numbers"),
    "cube of targets": (lambda: csr.Squared(np.zeros((1, 1, 1))), ValueError, "y must have one or two dimensions"),
}

SAMPLES = {
    "negative weights": (lambda: csr.Hinge(Y, sample_weight=[-1] * 6), ValueError, "finite and nonnegative"),
    "nan weights": (lambda: csr.Hinge(Y, sample_weight=[NAN] * 6), ValueError, "finite and nonnegative"),
    "zero weights": (lambda: csr.Squared(Y, sample_weight=[0] * 6), ValueError, "zero everywhere"),
    "one class without weight": (
        lambda: csr.Hinge(Y, sample_weight=[1, 0] * 3),
        ValueError,
        "zero for all examples",
    ),
    "a class without weight": (
        lambda: csr.Multinomial(KINDS, sample_weight=[1, 0, 1] * 2),
        ValueError,
        r"classes \[1\] have no example of positive weight",
    ),
    "too few weights": (lambda: csr.Hinge(Y, sample_weight=[1]), ValueError, "one number for each of the 6 labels"),
    "a single weight": (lambda: csr.Hinge(Y, sample_weight=2.0), ValueError, "one number for each of the 6 labels"),
    "weights as words": (lambda: csr.Hinge(Y, sample_weight=["a"] * 6), TypeError, "sample_weight must be real"),
    "boolean rows": (lambda: csr.Hinge(Y, rows=[True] * 6), TypeError, r"convert a mask .* np.flatnonzero\(mask\)"),
    "rows out of range": (lambda: build(csr.Hinge([0, 1], rows=[0, 6])), ValueError, "row 6, but the model has 6 rows"),
    "negative rows": (lambda: csr.Hinge([0, 1], rows=[0, -1]), ValueError, "nonnegative indices"),
    "repeated rows": (lambda: csr.Hinge([0, 1], rows=[1, 1]), ValueError, "repeated indices; .* sample_weight"),
    "float rows": (lambda: csr.Hinge([0, 1], rows=[0.0, 1.0]), TypeError, "integer indices, got dtype float64"),
    "rows as words": (lambda: csr.Hinge([0, 1], rows=["a", "b"]), TypeError, "integer indices, got dtype"),
    "too few rows": (lambda: csr.Hinge([0, 1], rows=[0]), ValueError, "one index for each of the 2 labels"),
    "a slice": (lambda: csr.Hinge([0, 1], rows=slice(0, 2)), ValueError, "one index for each of the 2 labels"),
}

STRENGTHS = {
    "negative": (lambda: -1 * csr.L1(), ValueError, "strength of L1 must be finite and at least 0 .* got -1"),
    "negative numpy": (lambda: np.float64(-1) * csr.L1(), ValueError, "strength of L1 .* got -1"),
    "negative term": (lambda: -1 * (2 * csr.L1()), ValueError, "strength of L1 .* got -1"),
    "negative objective": (lambda: -1 * RIDGE, ValueError, "strength of Logistic .* got -1"),
    "nan": (lambda: NAN * csr.L1(), ValueError, "strength of L1 .* got nan"),
    "infinite": (lambda: csr.L1() * INF, ValueError, "strength of L1 .* got inf"),
    "string": (lambda: "0.1" * csr.L1(), TypeError, "strength must be a real number, got str"),
    "bool": (lambda: True * csr.L1(), TypeError, "strength must be a real number, got bool"),
    "numpy bool": (lambda: csr.L1() * np.bool_(True), TypeError, "strength must be a real number, got bool"),
    "none": (lambda: None * csr.L1(), TypeError, "strength must be a real number, got NoneType"),
    "complex": (lambda: 1j * csr.L1(), TypeError, "strength must be a real number, got complex"),
    "array": (lambda: np.ones(3) * csr.L1(), TypeError, "strength must be a real number, got ndarray"),
    "array behind": (lambda: csr.L1() * np.ones(3), TypeError, "strength must be a real number, got ndarray"),
    "array of a term": (lambda: np.ones(3) * (2 * csr.L1()), TypeError, "strength must be a real number, got ndarray"),
    "array of a sum": (lambda: np.ones(3) * RIDGE, TypeError, "strength must be a real number, got ndarray"),
    "atom": (lambda: csr.L1() * csr.L1(), TypeError, "strength must be a real number, got L1"),
}

OBJECTIVES = {
    "no loss": (lambda: build(0.1 * csr.L1()), ValueError, "the objective has no loss; add one"),
    "outputs": (
        lambda: build(csr.Logistic(Y) + csr.Multinomial(KINDS)),
        ValueError,
        r"same number of outputs, got \[1, 3\]",
    ),
    "string": (lambda: build("logistic"), TypeError, "an objective is a sum of atoms .* got str"),
    "list": (lambda: build([csr.Logistic(Y)]), TypeError, "an objective is a sum of atoms .* got list"),
    "class": (lambda: csr.Logistic(Y) + csr.L1, TypeError, "an objective is a sum of atoms .* got type"),
    "number": (lambda: csr.Logistic(Y) + 3, TypeError, "an objective is a sum of atoms .* got int"),
    "number first": (lambda: 3 + csr.Logistic(Y), TypeError, "an objective is a sum of atoms .* got int"),
    "array as model": (lambda: csr.Problem(X, RIDGE), TypeError, r"model such as Linear\(X\), got ndarray"),
    "swapped": (lambda: csr.Problem(RIDGE, csr.Linear(X)), TypeError, r"model such as Linear\(X\), got Objective"),
    "feature network": (lambda: build(RIDGE + csr.FeatureNetwork(LARGER)), ValueError, "4 rows, .* has 3 features"),
    "laplacian": (lambda: build(RIDGE + csr.Laplacian(LARGER)), ValueError, "4 rows, .* has 3 features"),
    "fused lasso": (lambda: build(RIDGE + csr.FusedLasso(LARGER)), ValueError, "4 rows, .* has 3 features"),
    "groups": (lambda: build(RIDGE + csr.GroupLasso(LARGER_GROUPS)), ValueError, "4 rows, .* has 3 features"),
    "latent": (lambda: build(RIDGE + csr.LatentGroupLasso(LARGER_GROUPS)), ValueError, "4 rows, .* has 3 features"),
    "quadratic": (lambda: build(RIDGE + csr.Quadratic(matrix=np.eye(2))), ValueError, "2 rows, .* has 3 features"),
    "weights": (lambda: build(RIDGE + csr.L1(weights=[1, 2])), ValueError, "2 rows, .* has 3 features"),
    "ridge weights": (lambda: build(RIDGE + csr.Ridge(weights=[1, 2])), ValueError, "2 rows, .* has 3 features"),
    "box": (lambda: build(RIDGE + csr.Box([0, 1], 5)), ValueError, "2 rows, .* has 3 features"),
    "scores": (lambda: build(RIDGE + csr.Laplacian(GRAPH).on_scores()), ValueError, "3 rows, .* has 6 examples"),
    "pairs": (lambda: build(RIDGE + csr.Dissimilarity([(0, 6)])), ValueError, "row 6, .* has 6 examples"),
    "loss on scores": (lambda: csr.Logistic(Y).on_scores(), ValueError, r"on_scores\(\) is for weight penalties"),
    "norm on scores": (lambda: csr.RKHSNorm().on_scores(), ValueError, r"acts on the function; on_scores\(\) is for"),
    "bounds exclude": (lambda: fit(RIDGE + csr.Box(0, 1) + csr.Box(2, 3)), ValueError, "exclude each other"),
}

ATOMS = {
    "matrix as graph": (
        lambda: csr.FeatureNetwork(np.ones((3, 2, 1))),
        TypeError,
        r"a Graph, got ndarray; .* Graph\(W\)",
    ),
    "numbers as laplacian": (lambda: csr.Laplacian([1, 2, 3]), TypeError, "needs a Graph, got list"),
    "diagonal in a matrix": (lambda: csr.FusedLasso(np.eye(3)), ValueError, "diagonal|itself|loop"),
    "numbers as groups": (lambda: csr.GroupLasso([0, 1]), TypeError, r"needs Groups, got list; pass Groups\(lists"),
    "text as latent": (lambda: csr.LatentGroupLasso("ab"), TypeError, "needs Groups, got str; pass Groups"),
    "directed": (lambda: csr.Laplacian(csr.Graph([[0, 1], [0, 0]])), ValueError, r"undirected .*symmetrized\(\)"),
    "directed fused": (
        lambda: csr.FusedLasso(csr.Graph([[0, 1], [0, 0]])),
        ValueError,
        r"undirected .*symmetrized\(\)",
    ),
    "virtual fused": (
        lambda: csr.FusedLasso(csr.Graph.from_edges([(0, 1)], n_nodes=3, virtual=[2])),
        ValueError,
        "does not support virtual nodes; use Laplacian",
    ),
    "signed": (lambda: csr.FeatureNetwork(GRAPH, signed="both"), ValueError, '"separate" or "joint", got .both'),
    "normalized": (lambda: csr.Laplacian(GRAPH, normalized="no"), TypeError, "normalized must be True or False"),
    "group weights": (lambda: csr.GroupLasso(GROUPS, weights=[1, 2]), ValueError, "for 1 group; give a scalar or one"),
    "group weight": (lambda: csr.LatentGroupLasso(GROUPS, weights=-1), ValueError, "it must be finite and >= 0"),
    "asymmetric": (lambda: csr.Quadratic(matrix=[[1, 2], [0, 1]]), ValueError, "must be symmetric; pass"),
    "indefinite": (lambda: csr.Quadratic(matrix=[[1, 2], [2, 1]]), ValueError, "semidefinite, .* eigenvalue is -1"),
    "both": (lambda: csr.Quadratic(matrix=np.eye(2), factor=np.eye(2)), ValueError, "exactly one of matrix= and"),
    "neither": (lambda: csr.Quadratic(), ValueError, "exactly one of matrix= and factor="),
    "rectangular": (lambda: csr.Quadratic(matrix=np.ones((2, 3))), ValueError, "must be square.* as factor="),
    "nan matrix": (lambda: csr.Quadratic(matrix=[[NAN]]), ValueError, "matrix contains NaN"),
    "flat factor": (lambda: csr.Quadratic(factor=[1.0, 2.0]), ValueError, r"factor must be a matrix, got shape \(2,\)"),
    "bounds crossed": (lambda: csr.Box(1, 0), ValueError, "every lower bound must be at most its upper bound"),
    "nothing between": (lambda: csr.Box(INF, INF), ValueError, "a finite number between"),
    "nan bound": (lambda: csr.Box(NAN, 1), ValueError, "must not be NaN; use -inf or inf"),
    "bound of none": (lambda: csr.Box(None, 1), TypeError, "bounds must be real numbers"),
    "bound as word": (lambda: csr.Box("a", 1), TypeError, "bounds must be real numbers"),
    "bounds of two lengths": (lambda: csr.Box([0, 1], [1, 2, 3]), ValueError, "numbers or one for each feature"),
    "matrix of bounds": (lambda: csr.Box([[0]], 1), ValueError, "numbers or one for each feature"),
    "own bounds": (lambda: csr.NonNegative(1), ValueError, r"use Box\(lower, upper\)"),
    "negative weights": (lambda: csr.L1(weights=[1, -1]), ValueError, "nonnegative; number 1 is -1"),
    "nan weights": (lambda: csr.Ridge(weights=[NAN]), ValueError, "nonnegative; number 0 is nan"),
    "weights as words": (lambda: csr.L1(weights=["a"]), TypeError, "weights of L1 must be real numbers"),
    "one weight": (lambda: csr.L1(weights=2.0), ValueError, "one number for each feature"),
    "no weights": (lambda: csr.Ridge(weights=[]), ValueError, "one number for each feature"),
    "norm with weights": (lambda: csr.RKHSNorm(weights=[1]), ValueError, r"use Ridge\(weights=...\) or Quadratic"),
    "pair with itself": (lambda: csr.Dissimilarity([(0, 1), (2, 2)]), ValueError, "row 2 is paired with itself"),
    "pair twice": (lambda: csr.Dissimilarity([(0, 1), (1, 0)]), ValueError, r"pair \(0, 1\) is given more than once"),
    "float pair": (lambda: csr.Dissimilarity([(0.0, 1.0)]), TypeError, "integer row indices, got dtype float64"),
    "boolean pair": (lambda: csr.Dissimilarity([(False, True)]), TypeError, "integer row indices, got dtype bool"),
    "negative pair": (lambda: csr.Dissimilarity([(0, -1)]), ValueError, "nonnegative row indices"),
    "flat pair": (lambda: csr.Dissimilarity([0, 1]), ValueError, r"must have shape \(m, 2\), got \(2,\)"),
    "triple": (lambda: csr.Dissimilarity([(0, 1, 2)]), ValueError, r"must have shape \(m, 2\), got \(1, 3\)"),
    "ragged pairs": (lambda: csr.Dissimilarity([(0, 1), (2,)]), ValueError, "pairs must have two entries each"),
    "power": (lambda: csr.Dissimilarity([(0, 1)], power=3), ValueError, "power must be 1 or 2, got 3"),
    "pair weights": (lambda: csr.Dissimilarity([(0, 1)], weights=[1, 2]), ValueError, "one weight per pair"),
    "negative pairs": (lambda: csr.Dissimilarity([(0, 1)], weights=-1), ValueError, "finite and nonnegative"),
}

CALLS = {
    "few scores": (lambda: csr.Logistic(Y)([1.0, 2.0]), ValueError, r"scores of shape \(6, 1\), got \(2, 1\)"),
    "one score": (lambda: csr.Hinge(Y)([1.0]), ValueError, r"scores of shape \(6, 1\), got \(1, 1\)"),
    "many outputs": (lambda: csr.Squared(Y)(np.zeros((6, 2))), ValueError, r"scores of shape \(6, 1\), got \(6, 2\)"),
    "few outputs": (lambda: csr.Multinomial(KINDS)(np.zeros(6)), ValueError, r"scores of shape \(6, 3\), got \(6, 1\)"),
    "few weights": (lambda: csr.Laplacian(GRAPH)([1.0, 2.0]), ValueError, "acts on 3 rows, got an array of shape"),
    "few features": (lambda: csr.GroupLasso(GROUPS)([1.0, 2.0]), ValueError, "acts on 3 rows, got an array of shape"),
    "many features": (lambda: csr.L1(weights=[1, 2])([1.0, 2.0, 3.0]), ValueError, "acts on 2 rows, got an array"),
    "few rows": (lambda: csr.Dissimilarity([(0, 5)])([1.0, 2.0]), ValueError, "names row 5 of an array of shape"),
    "expression": (lambda: csr.Logistic(Y)(cp.Variable(3)), ValueError, r"scores of shape \(6, 1\), got \(3, 1\)"),
    "nan": (lambda: csr.L1()([NAN]), ValueError, "z contains NaN or infinite values"),
    "words": (lambda: csr.L1()(["a"]), TypeError, "z must be real numbers"),
    "number": (lambda: csr.L1()(3.0), ValueError, "z must have one or two dimensions"),
    "nan coef": (lambda: PROBLEM.value([NAN] * 3), ValueError, "coef and intercept must be finite"),
    "nan intercept": (lambda: PROBLEM.value([0.0] * 3, NAN), ValueError, "coef and intercept must be finite"),
    "short coef": (lambda: PROBLEM.value([1.0, 2.0]), ValueError, r"coef must have shape \(3,\), got \(2,\)"),
    "two intercepts": (lambda: PROBLEM.value([0.0] * 3, [1, 2]), ValueError, r"intercept must be 1 number\(s\)"),
    "no intercept": (
        lambda: csr.Problem(csr.Linear(X, intercept=False), RIDGE).value([0.0] * 3, 1.0),
        ValueError,
        "the model has intercept=False, but",
    ),
}

SOLVES = {
    "unknown solver": (lambda: fit(RIDGE, solver="magic"), ValueError, "there is no solver 'magic'; choose .* 'cvxpy'"),
    "number as solver": (lambda: fit(RIDGE, solver=3), ValueError, "there is no solver 3; choose from 'auto'"),
    "refusal": (
        lambda: fit(csr.Hinge(Y) + csr.L1(), solver="fista"),
        ValueError,
        r"'fista' does not accept this problem: Hinge\(6 rows\) has no gradient.* These do: .*'admm'.*'cvxpy'",
    ),
    "unknown option": (lambda: fit(RIDGE, solver="fista", rho=1.0), TypeError, "'fista' has no option 'rho'; it has"),
    "longer option": (lambda: fit(RIDGE, tolerance=1e-3), TypeError, "no option 'tolerance'; did you mean 'tol'?"),
    "option of auto": (lambda: fit(RIDGE, speed=1.0), TypeError, "has no option 'speed'; it has"),
    "zero tol": (lambda: fit(RIDGE, tol=0), ValueError, "tol must be positive, got 0"),
    "negative tol": (lambda: fit(RIDGE, tol=-1e-6), ValueError, "tol must be positive, got -1e-06"),
    "nan tol": (lambda: fit(RIDGE, tol=NAN), ValueError, "tol must be positive, got nan"),
    "zero iterations": (lambda: fit(RIDGE, max_iter=0), ValueError, "max_iter must be a positive integer, got 0"),
    "half an iteration": (lambda: fit(RIDGE, max_iter=1.5), ValueError, "max_iter must be a positive integer, got 1.5"),
    "no time": (lambda: fit(RIDGE, time_limit=0), ValueError, "time_limit must be positive, got 0"),
    "start of a list": (
        lambda: fit(RIDGE, warm_start=[1.0] * 3),
        TypeError,
        "a Solution or .coef, intercept., got list",
    ),
    "start of three": (
        lambda: fit(RIDGE, warm_start=(1, 2, 3)),
        TypeError,
        "a Solution or .coef, intercept., got tuple",
    ),
    "start of a shape": (lambda: fit(RIDGE, warm_start=(np.zeros(2), 0.0)), ValueError, "coef must have shape"),
    "start of nan": (lambda: fit(RIDGE, warm_start=([NAN] * 3, 0.0)), ValueError, "coef and intercept must be finite"),
    "start of another": (
        lambda: fit(RIDGE, warm_start=fit(csr.Multinomial(KINDS) + csr.Ridge())),
        ValueError,
        "coef must have shape",
    ),
    "unknown cvxpy solver": (
        lambda: fit(RIDGE, solver="cvxpy", cvxpy_solver="MAGIC"),
        ValueError,
        "CVXPY solver 'MAGIC' is not installed; installed solvers are .*CLARABEL",
    ),
    "unfit cvxpy solver": (
        lambda: fit(RIDGE, solver="cvxpy", cvxpy_solver="OSQP"),
        ValueError,
        "OSQP does not accept this problem",
    ),
    "negative rho": (lambda: fit(RIDGE, solver="admm", rho=-1.0), ValueError, "rho must be positive, got -1"),
    "relaxation": (lambda: fit(RIDGE, solver="admm", relaxation=2.0), ValueError, "relaxation must be between 0 and 2"),
}


@refused(DESIGNS)
def test_designs(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(LABELS)
def test_labels(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(SAMPLES)
def test_rows_and_sample_weights(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(STRENGTHS)
def test_strengths(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(OBJECTIVES)
def test_objectives(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(ATOMS)
def test_atoms(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(CALLS)
def test_calls(action, error, message):
    with pytest.raises(error, match=message):
        action()


@refused(SOLVES)
def test_solves(action, error, message):
    with pytest.raises(error, match=message):
        action()


def test_what_looks_bad_but_is_not():
    assert csr.Linear([[True, False]]).n_weights == 2
    assert csr.Linear(np.array([[1, 2.5]], dtype=object)).design.dtype == float
    assert (np.float64(2) * csr.L1()).scale == (csr.L1() * np.int64(2)).scale == 2.0
    assert csr.Logistic(np.array(["a", "b"], dtype=object), classes=np.array(["a", "b"])).classes == ("a", "b")
    assert csr.Multinomial([0.5, 1.5], classes=(1.5, 0.5)).y.tolist() == [[0, 1], [1, 0]]
    assert csr.Logistic([[0], [1]]).y.tolist() == [[-1], [1]]
    assert csr.Logistic([False, True]).y.tolist() == [[-1], [1]]
    assert csr.Box(0, [1, INF]).size == 2
    assert sum([csr.Logistic(Y), 0.1 * csr.Ridge()]).terms[1].scale == 0.1
    indefinite = csr.Kernel(np.diag([1.0, 1, 1, 1, 1, -0.5]))
    assert fit(csr.Logistic(Y) + csr.Ridge(), indefinite).status == "optimal"  # gram is an ordinary design here
