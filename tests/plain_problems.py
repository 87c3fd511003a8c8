"""Plain CVXPY problems as people write them, and problems that are refused: tables for ``test_from_cvxpy``.

Each case is a function of the data that returns a ``cp.Problem``; "textbook" ones follow CVXPY's own examples.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

import cvxstructreg as csr

CASES: dict[str, Callable[[Any], cp.Problem]] = {}
REFUSED: dict[str, tuple[Callable[[Any], cp.Problem], str]] = {}


def data(n: int = 40, d: int = 8) -> Any:
    """Data of two classes, numbers and counts, with new variables."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    z = X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=n)
    three = np.digitize(z, [-0.7, 0.7])
    return SimpleNamespace(
        n=n,
        d=d,
        X=X,
        sparse=sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)),
        r=z,
        y=np.where(z > 0, 1.0, -1.0),
        counts=rng.poisson(np.exp(0.5 * z)).astype(float),
        Y=np.column_stack([z, z**2]),
        three=np.eye(3)[three],
        labels=three,
        D=np.diff(np.eye(d), axis=0),
        groups=[[0, 1, 2], [2, 3, 4], [5, 6], [7]],
        w=cp.Variable(d, name="w"),
        b=cp.Variable(name="b"),
        lam=cp.Parameter(nonneg=True, value=2.0, name="lam"),
    )


def case(name: str) -> Callable[[Any], Any]:
    """Add a function of the data to the table; one that returns an expression is minimised."""

    def added(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def problem(g: Any) -> cp.Problem:
            made = make(g)
            return made if isinstance(made, cp.Problem) else cp.Problem(cp.Minimize(made))

        CASES[name] = problem
        return make

    return added


def refused(name: str, words: str) -> Callable[[Any], Any]:
    """Add a problem whose refusal has these words."""

    def added(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        REFUSED[name] = (make, words)
        return make

    return added


def squares(g: Any) -> Any:
    """The squared loss without an intercept."""
    return cp.sum_squares(g.X @ g.w - g.r)


case("textbook: least squares")(lambda g: squares(g))
case("textbook: ridge")(lambda g: squares(g) + g.lam * cp.pnorm(g.w, p=2) ** 2)
case("textbook: lasso")(lambda g: cp.norm2(g.X @ g.w - g.r) ** 2 / g.n + g.lam * cp.norm1(g.w))
case("textbook: logistic regression, maximised")(
    lambda g: cp.Problem(
        cp.Maximize(
            cp.sum(cp.multiply((g.y + 1) / 2, g.X @ g.w) - cp.logistic(g.X @ g.w)) / g.n - 0.05 * cp.norm(g.w, 1)
        )
    )
)
case("textbook: SVM with L1")(
    lambda g: cp.sum(cp.pos(1 - cp.multiply(g.y, g.X @ g.w - g.b))) / g.n + 0.05 * cp.norm(g.w, 1)
)
case("textbook: Huber regression")(lambda g: cp.sum(cp.huber(g.X @ g.w - g.r, 1)))
case("textbook: quantile regression")(
    lambda g: cp.sum(0.5 * cp.abs(g.r - g.X @ g.w - g.b) + (0.8 - 0.5) * (g.r - g.X @ g.w - g.b))
)
case("textbook: least absolute deviations")(lambda g: cp.norm(g.X @ g.w + g.b - g.r, 1) + 0.1 * cp.sum_squares(g.w))
case("textbook: elastic net")(lambda g: squares(g) + g.lam * (0.5 * cp.norm1(g.w) + 0.25 * cp.sum_squares(g.w)))
case("textbook: nonnegative least squares")(lambda g: cp.Problem(cp.Minimize(squares(g)), [g.w >= 0]))
case("textbook: bounded least squares")(lambda g: cp.Problem(cp.Minimize(squares(g)), [g.w >= 0, g.w <= 0.5]))
case("textbook: total variation of a signal")(lambda g: 0.5 * cp.sum_squares(g.w - g.r[: g.d]) + 0.3 * cp.tv(g.w))
case("textbook: trend filtering")(
    lambda g: 0.5 * cp.sum_squares(g.r[: g.d] - g.w) + 0.4 * cp.norm(np.diff(np.eye(g.d), 2, axis=0) @ g.w, 1)
)
case("textbook: Poisson regression")(
    lambda g: cp.sum(cp.exp(g.X @ g.w + g.b) - cp.multiply(g.counts, g.X @ g.w + g.b)) + cp.norm1(g.w)
)


@case("textbook: quadratic program")
def quadratic_program(g: Any) -> cp.Problem:
    P = g.X.T @ g.X / g.n
    goal = 0.5 * cp.quad_form(g.w, P) + g.r[: g.d] @ g.w
    return cp.Problem(cp.Minimize(goal), [g.D @ g.w <= 1.0, cp.sum(g.w) == 1])


@case("textbook: portfolio")
def portfolio(g: Any) -> cp.Problem:
    sigma = g.X.T @ g.X / g.n
    goal = np.abs(g.r[: g.d]) @ g.w - g.lam * cp.quad_form(g.w, cp.psd_wrap(sigma))
    return cp.Problem(cp.Maximize(goal), [cp.sum(g.w) == 1, g.w >= 0])


@case("textbook: image with missing pixels")
def inpainting(g: Any) -> cp.Problem:
    U = cp.Variable((5, 4))
    known = (np.arange(20).reshape(5, 4) % 3 > 0).astype(float)
    image = np.outer(np.sign(np.arange(5) - 1.5), np.ones(4))
    return cp.Problem(cp.Minimize(cp.sum_squares(cp.multiply(known, U - image)) + 0.5 * cp.tv(U)))


@case("textbook: group lasso of a sum over tasks")
def tasks(g: Any) -> Any:
    W = cp.Variable((g.d, 2))
    return cp.sum_squares(g.X @ W - g.Y) + 3 * cp.sum(cp.norm(W, axis=1))


@case("textbook: several classes")
def several_classes(g: Any) -> Any:
    W, b = cp.Variable((g.d, 3)), cp.Variable(3)
    Z = g.X @ W + b
    return cp.sum(cp.log_sum_exp(Z, axis=1)) - cp.sum(cp.multiply(g.three, Z)) + 0.5 * cp.sum_squares(W)


@case("textbook: matrix completion")
def completion(g: Any) -> Any:
    M = cp.Variable((4, 5))
    seen = (np.arange(20).reshape(4, 5) % 4 > 0).astype(float)
    return cp.sum_squares(cp.multiply(seen, M - np.outer(g.r[:4], g.r[4:9]))) + 0.5 * cp.normNuc(M)


case("mean of squares, sum of absolute values")(
    lambda g: cp.mean(cp.square(g.r - g.X @ g.w)) + 0.1 * cp.sum(cp.abs(g.w))
)
case("lasso with an intercept")(lambda g: cp.sum_squares(g.X @ g.w + g.b - g.r) / (2 * g.n) + 0.1 * cp.norm(g.w, 1))
case("hidden intercept")(
    lambda g: cp.sum_squares(np.column_stack([np.full(g.n, 2.0), g.X[:, 1:]]) @ g.w - g.r - 3) + 3 * cp.norm1(g.w[1:])
)
case("sparse data")(lambda g: cp.sum_squares(g.sparse @ g.w + g.b - g.r) + g.lam * cp.norm1(g.w))
case("residuals written row by row")(
    lambda g: sum(cp.square(g.X[i] @ g.w - g.r[i]) for i in range(g.n)) + cp.norm1(g.w)
)
case("logistic with labels inside")(
    lambda g: cp.sum(cp.logistic(cp.multiply(-g.y, g.X @ g.w + g.b))) + 2 * cp.norm1(g.w)
)
case("logistic with labels 0 and 1")(
    lambda g: -cp.sum(cp.multiply((g.y + 1) / 2, g.X @ g.w + g.b) - cp.logistic(g.X @ g.w + g.b)) + 2 * cp.norm1(g.w)
)
case("logistic with labels in a product")(
    lambda g: cp.sum(cp.logistic(g.X @ g.w)) - ((g.y + 1) / 2) @ (g.X @ g.w) + cp.sum_squares(g.w)
)
case("logistic with shares of labels")(
    lambda g: cp.sum(cp.logistic(g.X @ g.w + g.b)) - (0.2 + 0.3 * (g.y + 1)) @ (g.X @ g.w + g.b) + cp.norm1(g.w)
)
case("weighted logistic")(
    lambda g: (
        cp.sum(cp.multiply(np.arange(1, g.n + 1) / g.n, cp.logistic(-cp.multiply(g.y, g.X @ g.w))))
        + 0.5 * cp.norm1(g.w)
    )
)
case("weights in front of a vector of losses")(
    lambda g: np.linspace(0, 1, g.n) @ cp.logistic(-cp.multiply(g.y, g.X @ g.w)) + 0.5 * cp.norm1(g.w)
)
case("logistic with an offset")(
    lambda g: (
        cp.sum(cp.logistic(-cp.multiply(g.y, g.X @ g.w + 0.3 * g.r))) + g.lam * cp.norm1(g.w) + cp.sum_squares(g.w)
    )
)
case("logistic of one class")(lambda g: cp.sum(cp.logistic(g.X @ g.w)) + cp.norm1(g.w))
case("logistic of one row")(lambda g: cp.logistic(g.X[0] @ g.w + 1) + 0.1 * cp.sum_squares(g.w))
case("SVM")(lambda g: cp.sum(cp.pos(1 - cp.multiply(g.y, g.X @ g.w + g.b))) + 0.5 * cp.sum_squares(g.w))
case("SVM with maximum and mean")(
    lambda g: cp.mean(cp.maximum(0, 1 - cp.multiply(g.y, g.X @ g.w - g.b))) + 0.05 * cp.norm(g.w, 2) ** 2
)
case("SVM with margin 2")(lambda g: cp.sum(cp.pos(2 - 2 * cp.multiply(g.y, g.X @ g.w))) + cp.sum_squares(g.w))
case("SVM with margins of each row")(
    lambda g: cp.sum(cp.pos(np.abs(g.r) - cp.multiply(g.y, g.X @ g.w))) + cp.sum_squares(g.w)
)
case("squared hinge")(
    lambda g: cp.sum(cp.square(cp.pos(1 - cp.multiply(g.y, g.X @ g.w + g.b)))) + g.lam * cp.norm1(g.w)
)
case("neg as a hinge")(lambda g: cp.sum(cp.neg(cp.multiply(g.y, g.X @ g.w) - 1)) + cp.sum_squares(g.w))
case("quantile by two parts")(
    lambda g: cp.sum(0.9 * cp.pos(g.r - g.X @ g.w) + 0.1 * cp.neg(g.r - g.X @ g.w)) + 0.3 * cp.norm1(g.w)
)
case("quantile by a maximum")(
    lambda g: cp.sum(cp.maximum(0.9 * (g.r - g.X @ g.w), -0.1 * (g.r - g.X @ g.w))) + 0.3 * cp.norm1(g.w)
)
case("maximum of an expression and a product with it")(
    lambda g: cp.sum(cp.maximum(g.w - 0.5, np.ones((g.d, g.d)) @ (g.w - 0.5))) + squares(g)
)
case("Huber with an intercept and L1")(lambda g: cp.sum(cp.huber(g.X @ g.w + g.b - g.r, 0.5)) + cp.norm1(g.w))
case("group lasso in a loop")(
    lambda g: squares(g) + 2 * sum(np.sqrt(len(group)) * cp.norm(g.w[group]) for group in g.groups)
)
case("group lasso in a stack")(
    lambda g: squares(g) + 2 * cp.sum(cp.hstack([cp.norm2(g.w[group]) for group in g.groups]))
)
case("group lasso of slices")(
    lambda g: (
        cp.sum(cp.logistic(-cp.multiply(g.y, g.X @ g.w + g.b)))
        + g.lam * (cp.norm(g.w[:4]) + cp.norm(g.w[3:6]) + cp.norm(g.w[6:]))
    )
)
case("sparse group lasso")(
    lambda g: (
        cp.sum(cp.logistic(-cp.multiply(g.y, g.X @ g.w)))
        + sum(cp.norm(g.w[group]) for group in g.groups)
        + 0.5 * cp.norm1(g.w)
    )
)
case("mixed norm")(lambda g: squares(g) + 3 * cp.mixed_norm(cp.reshape(g.w, (4, 2), order="C"), 2, 1))
case("norms along an axis")(lambda g: squares(g) + 3 * cp.sum(cp.norm(cp.reshape(g.w, (2, 4), order="F"), axis=0)))
case("quadratic form")(lambda g: squares(g) + 2 * cp.norm1(g.w) + cp.quad_form(g.w, g.D.T @ g.D))
case("quadratic form as a product")(lambda g: squares(g) + 2 * cp.norm1(g.w) + g.w.T @ (g.D.T @ g.D) @ g.w)
case("quadratic form with an offset")(lambda g: cp.quad_form(g.w - 1, g.D.T @ g.D) + squares(g) + cp.norm1(g.w))
case("fused lasso")(lambda g: squares(g) + 3 * cp.norm1(g.D @ g.w) + cp.norm1(g.w))
case("diff and cumsum")(lambda g: squares(g) + 3 * cp.norm1(cp.diff(g.w)) + 0.1 * cp.norm1(cp.cumsum(g.w)))
case("entries repeated and reversed")(lambda g: squares(g) + cp.norm1(g.w[::-1][:3]) + cp.norm1(g.w[[0, 0, 1]]))
case("entries by a mask")(lambda g: squares(g) + cp.norm1(g.w[np.array([True, False] * 4)]))
case("squares along an axis")(
    lambda g: squares(g) + cp.sum(cp.multiply([1.0, 2.0], cp.sum_squares(cp.reshape(g.w, (4, 2), order="F"), axis=0)))
)
case("Huber penalty")(lambda g: squares(g) + cp.sum(cp.huber(g.w, 0.2)))
case("two losses")(
    lambda g: squares(g) + cp.sum(cp.logistic(-cp.multiply(g.y, g.X @ g.w))) + cp.sum_squares(g.w) + cp.norm1(g.w)
)
case("an affine term of the loss")(lambda g: squares(g) + g.r[: g.d] @ g.w + cp.norm1(g.w) + 7)
case("bounds by absolute values")(lambda g: cp.Problem(cp.Minimize(squares(g)), [cp.abs(g.w) <= 0.3]))
case("bounds by the largest entry, one entry fixed")(
    lambda g: cp.Problem(cp.Minimize(squares(g) + cp.norm1(g.w)), [cp.norm(g.w, "inf") <= 0.4, g.w[2] == 0.1])
)
case("lasso with a constraint in place of a penalty")(
    lambda g: cp.Problem(cp.Minimize(squares(g)), [cp.norm1(g.w) <= 1.0])
)
case("equations")(lambda g: cp.Problem(cp.Minimize(squares(g) + cp.norm1(g.w)), [cp.sum(g.w) == 0, g.w[0] == g.w[1]]))
case("largest entry as a penalty")(lambda g: squares(g) + cp.norm(g.w, "inf"))
case("spectral norm")(lambda g: squares(g) + cp.norm(cp.reshape(g.w, (4, 2), order="F"), 2))
case("induced norm of a matrix")(lambda g: squares(g) + cp.norm(cp.reshape(g.w, (4, 2), order="F"), 1))
case("power 1.5")(lambda g: squares(g) + cp.sum(cp.power(cp.abs(g.w), 1.5)))
case("norm of a difference to a point")(lambda g: squares(g) + 2 * cp.norm(g.w - 0.5))
case("square root of the squared loss")(lambda g: cp.norm(g.X @ g.w - g.r, 2) + 0.3 * cp.norm1(g.w))
case("one number")(lambda g: cp.sum_squares(g.b - g.r) + cp.abs(g.b - 1))
case("log barrier")(lambda g: squares(g) - cp.sum(cp.log(g.w + 3)))


@case("absolute values by a second variable")
def epigraph(g: Any) -> cp.Problem:
    t = cp.Variable(g.d)
    return cp.Problem(cp.Minimize(squares(g) + g.lam * cp.sum(t)), [g.w <= t, -g.w <= t])


@case("two variables")
def two_variables(g: Any) -> Any:
    u, v = cp.Variable(5), cp.Variable(3)
    return cp.sum_squares(g.X[:, :5] @ u + g.X[:, 5:] @ v + g.b - g.r) + 2 * cp.norm1(u) + 3 * cp.norm(v)


@case("nonnegative variable and its sum")
def nonnegative_variable(g: Any) -> Any:
    u = cp.Variable(g.d, nonneg=True)
    return cp.sum_squares(g.X @ u - g.r) + g.lam * cp.sum(u)


@case("bounds of a variable")
def bounded_variable(g: Any) -> Any:
    u = cp.Variable(g.d, bounds=[-0.1, 0.4])
    return cp.sum(cp.logistic(-cp.multiply(g.y, g.X @ u + g.b))) + 0.1 * cp.norm1(u)


@case("matrix variable, columns treated differently")
def columns_apart(g: Any) -> Any:
    W = cp.Variable((g.d, 2))
    return cp.norm(g.X @ W - g.Y, "fro") ** 2 + cp.norm1(W[:, 0]) + 2 * cp.sum(cp.abs(W[:, 1]))


@case("matrix variable with intercepts, columns treated alike")
def columns_alike(g: Any) -> Any:
    W, b = cp.Variable((g.d, 2)), cp.Variable((1, 2))
    return cp.sum_squares(g.X @ W + b - g.Y) + 2 * cp.sum(cp.abs(W)) + 3 * cp.mixed_norm(W, 2, 1)


@case("several classes with row norms")
def classes_with_groups(g: Any) -> Any:
    W = cp.Variable((g.d, 3))
    Z = g.X @ W
    each = cp.log_sum_exp(Z, axis=1) - cp.sum(cp.multiply(g.three, Z), axis=1)
    return cp.sum(each) / g.n + 0.05 * cp.sum(cp.norm(W, 2, axis=1))


@case("semidefinite constraint")
def semidefinite(g: Any) -> cp.Problem:
    S = cp.Variable((3, 3))
    return cp.Problem(cp.Minimize(cp.sum_squares(S - np.outer(g.r[:3], g.r[3:6])) + 0.1 * cp.norm1(S)), [S >> 0])


@case("nuclear norm of several outputs")
def nuclear(g: Any) -> Any:
    W = cp.Variable((g.d, 2))
    return cp.sum_squares(g.X @ W - g.Y) + 5 * cp.normNuc(W)


@case("atoms of this library")
def atoms(g: Any) -> Any:
    groups = csr.Groups(g.groups, n_features=g.d)
    return csr.Logistic(g.y)(g.X @ g.w + g.b) + g.lam * csr.GroupLasso(groups)(g.w) + (0.5 * csr.L1())(g.w)


@case("atoms of this library with auxiliary variables")
def latent(g: Any) -> Any:
    groups = csr.Groups(g.groups, n_features=g.d)
    return squares(g) + 2 * csr.LatentGroupLasso(groups)(g.w)


@case("atoms of this library on parts of the weights")
def atoms_on_parts(g: Any) -> Any:
    groups = csr.Groups([[0, 1], [1, 2]], n_features=3)
    penalty = csr.GroupLasso(groups)(g.w[:3]) + csr.L1()(2 * g.w[3:]) + csr.NonNegative()(g.w[5:])
    return squares(g) + g.lam * penalty


@case("atoms of this library for several classes")
def atoms_of_classes(g: Any) -> Any:
    W = cp.Variable((g.d, 3))
    return csr.Multinomial(g.labels)(g.X @ W) + csr.GroupLasso(csr.Groups(g.groups, n_features=g.d))(W)


refused("linear program", "no term that could be a loss")(
    lambda g: cp.Problem(cp.Minimize(g.r[: g.d] @ g.w), [g.w >= -1, g.w <= 1, cp.sum(g.w) == 0])
)
refused("log det", "no term that could be a loss; the first term that is left is log_det")(
    lambda g: cp.Problem(cp.Maximize(cp.log_det(cp.reshape(g.w[:4], (2, 2), order="F"))))
)
refused("symmetric variable", "declared symmetric")(
    lambda g: cp.Problem(cp.Minimize(cp.sum_squares(cp.Variable((3, 3), symmetric=True) - 1)))
)
refused("integers", "declared integer")(
    lambda g: cp.Problem(cp.Minimize(cp.sum_squares(g.X[:, :3] @ cp.Variable(3, integer=True) - g.r)))
)
refused("a concave term", "negative factor")(lambda g: cp.Problem(cp.Minimize(squares(g) - cp.norm1(g.w))))
refused("an indefinite form", "not convex")(
    lambda g: cp.Problem(cp.Minimize(squares(g) + cp.quad_form(g.w, np.diag([-1.0] + [1.0] * (g.d - 1)))))
)
refused("a constraint that is not convex", "is not convex by the rules of CVXPY")(
    lambda g: cp.Problem(cp.Minimize(squares(g)), [cp.norm1(g.w) >= 1])
)
refused("a term that is not convex", "is not convex by the rules of CVXPY")(
    lambda g: cp.Problem(cp.Minimize(squares(g) + cp.sqrt(cp.sum_squares(g.w))))
)
refused("unbounded below", "bounded from below")(lambda g: cp.Problem(cp.Minimize(squares(g) + 3 * g.b)))
refused("log_sum_exp without labels", "bounded from below")(
    lambda g: cp.Problem(cp.Minimize(cp.sum(cp.log_sum_exp(cp.reshape(g.w, (4, 2), order="F"), axis=1)) + squares(g)))
)
refused("a parameter without a value", "mu has no value")(
    lambda g: cp.Problem(cp.Minimize(squares(g) + cp.Parameter(nonneg=True, name="mu") * cp.norm1(g.w)))
)
refused("a product of variables", "not convex")(lambda g: cp.Problem(cp.Minimize(squares(g) + g.b * g.w[0])))
