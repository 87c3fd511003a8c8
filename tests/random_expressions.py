"""Random convex, nonnegative CVXPY expressions: sums, maxima and powers of CVXPY atoms after affine maps."""

import cvxpy as cp
import numpy as np


def affine(rng, d, offset=True):
    """A random affine map of the weights: dense, sparse, differences, a slice or the identity."""
    kind = rng.integers(5)
    if kind == 0:
        K = rng.normal(size=(int(rng.integers(1, d + 3)), d))
    elif kind == 1:
        K = rng.normal(size=(int(rng.integers(2, d + 1)), d)) * (rng.uniform(size=d) < 0.5)
        K[0, 0] += 1.0
    elif kind == 2:
        K = np.diff(np.eye(d), axis=0)
    elif kind == 3:
        K = np.eye(d)[: int(rng.integers(2, d + 1))]
    else:
        K = float(rng.choice([0.5, 1.0, 3.0])) * np.eye(d)
    o = rng.normal(size=len(K)) if offset and rng.uniform() < 0.4 else np.zeros(len(K))
    return lambda w: K @ w + o, len(K)


def norms(rng, m):
    """Functions of an m-vector that are finite everywhere, convex and nonnegative."""
    M, k, p = float(rng.uniform(0.2, 2.0)), int(rng.integers(1, m + 1)), float(rng.choice([1.5, 2.0, 3.0]))
    weights = rng.uniform(0.2, 2.0, size=m)
    return {
        "norm1": cp.norm1,
        "norm2": lambda z: cp.norm(z, 2),
        "norm_inf": cp.norm_inf,
        "sum abs": lambda z: cp.sum(cp.multiply(weights, cp.abs(z))),
        "tv": lambda z: cp.tv(z) if m > 1 else cp.norm1(z),
        "huber": lambda z: cp.sum(cp.huber(z, M)),
        "sum squares": cp.sum_squares,
        "pos": lambda z: cp.sum(cp.pos(z)),
        "hinge": lambda z: cp.sum(cp.pos(1.0 - z)),
        "max pos": lambda z: cp.pos(cp.max(z)),
        "logistic": lambda z: cp.sum(cp.logistic(z)),
        "log_sum_exp": lambda z: cp.log_sum_exp(cp.abs(z)),
        "sum_largest": lambda z: cp.sum_largest(cp.abs(z), k),
        "range": lambda z: cp.max(z) - cp.min(z),
        "power": lambda z: cp.sum(cp.power(cp.abs(z), 1.5)),
        "pnorm": lambda z: cp.norm(z, p),
        "asymmetric": lambda z: cp.sum(cp.maximum(2.0 * z, -0.5 * z)),
        "square of norm": lambda z: cp.square(cp.norm1(z)),
        "quad_over_lin": lambda z: cp.quad_over_lin(z, 2.0),
    }


def expression(seed, d):
    """A random function of d weights and its text."""
    rng = np.random.default_rng(seed)
    parts, texts = [], []
    for _ in range(int(rng.integers(1, 4))):
        inner, m = affine(rng, d)
        name = str(rng.choice(sorted(norms(rng, m))))
        outer, scale = norms(rng, m)[name], float(rng.choice([0.3, 1.0, 2.0]))
        parts.append(lambda w, inner=inner, outer=outer, scale=scale: scale * outer(inner(w)))
        texts.append(f"{scale:g} {name}({m})")
    how = rng.uniform()
    if how < 0.15 and len(parts) > 1:
        return lambda w: cp.max(cp.hstack([part(w) for part in parts])), f"max of {', '.join(texts)}"
    if how < 0.25:
        return lambda w: cp.norm(cp.hstack([cp.pos(part(w)) for part in parts]), 2), f"norm of {', '.join(texts)}"
    return lambda w: sum(part(w) for part in parts), " + ".join(texts)
