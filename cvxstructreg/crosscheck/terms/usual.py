"""Random terms of a recipe: losses with their labels, penalties with their structure."""

from __future__ import annotations

from typing import Any

import numpy as np

Term = dict[str, Any]

#: Losses of residuals, for one or more outputs; losses of means, with logarithmic link; and losses of classes.
RESIDUAL = ("Squared", "MultiTask", "Huber", "Absolute", "Quantile")
MEANS = ("Poisson", "Gamma", "Tweedie")
CLASSES = ("Logistic", "Multinomial", "Hinge", "SquaredHinge", "MulticlassHinge")
LOSSES = ("Squared", *CLASSES, *RESIDUAL[1:], *MEANS, "Cox")
#: Losses whose labels are numbers.
REAL = (*RESIDUAL, *MEANS, "Cox")
#: The optional arguments of losses, and those with one entry for each label.
OPTIONS = (
    *("rows", "sample_weight", "classes", "offset", "exposure"),
    *("delta", "quantile", "power", "task_weight", "event", "ties", "strata"),
)
BY_ROW = ("sample_weight", "offset", "exposure", "event", "strata")
#: Penalties of the weights; each is drawn with the same probability.
ON_WEIGHTS = (
    "Ridge",
    "L1",
    "Quadratic",
    "Laplacian",
    "FeatureNetwork",
    "FusedLasso",
    "GroupLasso",
    "LatentGroupLasso",
    "Box",
    "NonNegative",
    "RKHSNorm",
)
#: Penalties that may act on the scores or on the function instead.
QUADRATIC = ("Ridge", "Quadratic", "Laplacian", "FeatureNetwork")
ON_SCORES = (*QUADRATIC, "FusedLasso", "GroupLasso", "L1", "Box")


def loss_term(rng: np.random.Generator, kind: str, n: int, k: int, wild: bool) -> Term:
    """Draw a loss on all or some rows, with labels and possibly sample weights."""
    rows = rng.permutation(n)[: max(2, int(rng.integers(1, n + 1)))] if rng.random() < 0.3 else np.arange(n)
    if kind not in REAL and len(rows) < k + 1:
        rows = rng.permutation(n)
    m = len(rows)
    term: Term = {"kind": kind, "on": "rows", "scale": 1.0}
    if kind in RESIDUAL:
        term |= _residual(rng, kind, m, k, wild)
    elif kind in MEANS:
        term |= {"k": 1, **_means(rng, kind, m)}
    elif kind == "Cox":
        term |= {"k": 1, **_survival(rng, m)}
    elif k == 1:
        signs = rng.permutation(np.arange(m) % 2) if rng.random() < 0.5 else (np.arange(m) < rng.integers(1, m)) + 0
        signs *= int(rng.random() < 0.98)  # rarely all rows are of one class, which is refused
        term |= {"k": 1, "y": (signs if rng.random() < 0.5 else 2 * signs - 1).tolist()}
    else:
        y = rng.permutation(np.arange(m) % k)
        term |= {"k": k, "y": y.tolist(), "classes": list(range(k))}
    term["rows"] = None if len(rows) == n and rng.random() < 0.8 and np.all(np.diff(rows) == 1) else rows.tolist()
    term["sample_weight"] = _sample_weight(rng, m, wild)
    if rng.random() < 0.2:
        offset = rng.normal(size=m if k == 1 else (m, k)) * 10.0 ** rng.uniform(-2, 1)
        term["offset"] = offset.tolist()
    if rng.random() < 0.1:
        term["scale"] = float(10.0 ** rng.uniform(-3, 3))
    return term


def _residual(rng: np.random.Generator, kind: str, m: int, k: int, wild: bool) -> Term:
    """Draw real targets, and the parameter of the loss."""
    y = rng.normal(size=m) if k == 1 and kind != "MultiTask" else rng.normal(size=(m, k))
    unit = 10.0 ** rng.uniform(-9, 9) if wild and rng.random() < 0.5 else 1.0
    y = y * unit
    if rng.random() < 0.1:
        y = y + 10.0 ** rng.uniform(0, 6)
    term: Term = {"y": y.tolist()}
    if kind == "MultiTask" and rng.random() < 0.5:
        term["task_weight"] = rng.uniform(0.2, 3.0, size=k).tolist()
    if kind == "Huber":
        term["delta"] = float(unit * 10.0 ** rng.uniform(-2, 1))
    if kind == "Quantile":
        term["quantile"] = float(rng.choice([0.5, 0.9, rng.uniform(0.01, 0.99)]))
    return term


def _means(rng: np.random.Generator, kind: str, m: int) -> Term:
    """Draw counts, positive or nonnegative numbers, and the parameter of the loss."""
    if kind == "Poisson":
        y = rng.poisson(10.0 ** rng.uniform(-0.5, 2.0, size=m if rng.random() < 0.5 else 1), size=m)
        y[0] += int(rng.random() < 0.98 and not y.any())  # rarely all counts are zero, which is refused
        exposure = (10.0 ** rng.uniform(-2, 2, size=m)).tolist() if rng.random() < 0.3 else None
        return {"y": y.tolist(), "exposure": exposure}
    y = rng.gamma(10.0 ** rng.uniform(-0.5, 1.0), size=m) * 10.0 ** rng.uniform(-2, 3)
    y = np.maximum(y, 1e-12)
    if kind == "Gamma":
        return {"y": y.tolist()}
    y[1:] *= rng.random(m - 1) < 0.7
    return {"y": y.tolist(), "power": float(rng.choice([1.5, rng.uniform(1.05, 1.95)]))}


def _survival(rng: np.random.Generator, m: int) -> Term:
    """Draw times with or without ties, events, and possibly strata."""
    time = rng.exponential(size=m) * 10.0 ** rng.uniform(-2, 2)
    if rng.random() < 0.6:
        time = np.ceil(4.0 * rng.random(m))
    event = rng.random(m) < rng.choice([0.3, 0.8, 1.0])
    event[0] |= rng.random() < 0.98  # rarely there is no event, which is refused
    strata = rng.integers(0, 3, size=m).tolist() if rng.random() < 0.3 else None
    return {
        "y": time.tolist(),
        "event": event.tolist(),
        "ties": str(rng.choice(["breslow", "efron"])),
        "strata": strata,
    }


def _sample_weight(rng: np.random.Generator, m: int, wild: bool) -> list[float] | None:
    if rng.random() < 0.6:
        return None
    weights = rng.uniform(0.2, 2.0, size=m)
    if rng.random() < 0.4 and m > 4:
        weights[rng.random(m) < 0.2] = 0.0
    if wild and rng.random() < 0.5:
        weights[rng.integers(m)] *= 10.0 ** rng.uniform(3, 9)
    if wild and rng.random() < 0.3:
        weights *= 10.0 ** rng.uniform(-9, 9)
    return [float(weight) for weight in weights]


def penalty_terms(
    rng: np.random.Generator, model: dict[str, Any], k: int, wild: bool, losses: list[Term]
) -> list[Term]:
    """Draw zero to three penalties."""
    matrix = np.asarray(model["matrix"], dtype=float)
    n, d = matrix.shape
    typical = typical_pull(matrix, losses)
    terms: list[Term] = []
    if model["kind"] == "kernel" and rng.random() < 0.85:
        terms.append({"kind": "RKHSNorm", "on": "function", "scale": strength(rng, 1.0, wild)})
        kinds = [] if rng.random() < 0.7 else [str(rng.choice(ON_WEIGHTS))]
    else:
        kinds = rng.choice(ON_WEIGHTS, size=int(rng.choice([0, 1, 1, 1, 2, 2, 3]))).tolist()
    for kind in kinds:
        on = "function" if kind == "RKHSNorm" else "weights"
        terms.append(_penalty(rng, kind, d, wild) | {"on": on, "scale": strength(rng, typical, wild)})
    if rng.random() < (0.5 if model["kind"] == "kernel" else 0.12):
        kind = str(rng.choice(ON_SCORES))
        on = "function" if kind in QUADRATIC and rng.random() < 0.4 else "scores"
        terms.append(_penalty(rng, kind, n, wild) | {"on": on, "scale": strength(rng, 1.0, wild)})
    if n > 1 and rng.random() < (0.3 if model["kind"] == "kernel" else 0.08):
        terms.append(_dissimilarity(rng, n) | {"on": "scores", "scale": strength(rng, 1.0, wild)})
    return terms


def typical_pull(matrix: np.ndarray, losses: list[Term]) -> float:
    """Return roughly the size of the gradient of the first loss at zero weights."""
    y = np.asarray(losses[0]["y"], dtype=float)
    pull = float(np.abs(matrix).max(initial=0.0)) * float(np.abs(y).max(initial=0.0) if y.size else 1.0)
    weights = losses[0]["sample_weight"]
    return (pull * (max(weights) if weights else 1.0)) or 1.0


def strength(rng: np.random.Generator, typical: float, wild: bool) -> float:
    """Draw the strength of a penalty; rarely zero."""
    choice = rng.random()
    if choice < 0.03:
        return 0.0
    if wild and choice < 0.3:
        return float(10.0 ** rng.uniform(-9, 9))
    unit = typical if choice < 0.7 else 1.0
    return float(unit * 10.0 ** rng.uniform(-3, 1))


def _penalty(rng: np.random.Generator, kind: str, m: int, wild: bool) -> Term:
    """Draw the structure of a penalty on m rows."""
    if kind in ("Ridge", "L1"):
        weights = rng.uniform(0.0, 2.0, size=m) * (rng.random(m) < 0.8) if rng.random() < 0.3 else None
        return {"kind": kind, "weights": None if weights is None else weights.tolist()}
    if kind == "Quadratic":
        factor = rng.normal(size=(int(rng.integers(1, m + 2)), m)) * (rng.random(m) < 0.9)
        if rng.random() < 0.5:
            matrix = factor.T @ factor
            return {"kind": kind, "matrix": ((matrix + matrix.T) / 2).tolist(), "factor": None}
        return {"kind": kind, "matrix": None, "factor": factor.tolist(), "sparse": bool(rng.random() < 0.5)}
    if kind == "Laplacian":
        graph = random_graph(rng, m, wild, directed=False)
        power = 1 if graph["virtual"] else int(rng.choice([1, 1, 1, 2, 3]))
        return {"kind": kind, "graph": graph, "normalized": bool(rng.random() < 0.4), "power": power}
    if kind == "FeatureNetwork":
        graph = random_graph(rng, m, wild, directed=bool(rng.random() < 0.6))
        return {"kind": kind, "graph": graph, "signed": str(rng.choice(["separate", "joint"]))}
    if kind == "FusedLasso":
        return {"kind": kind, "graph": random_graph(rng, m, wild, directed=False, virtual=False)}
    if kind in ("GroupLasso", "LatentGroupLasso"):
        return {"kind": kind, **_groups(rng, m, wild)}
    if kind == "Box":
        return {"kind": kind, **_bounds(rng, m)}
    return {"kind": kind}


def _bounds(rng: np.random.Generator, m: int) -> Term:
    """Draw bounds that usually contain zero, as scalars or one for each weight; None is no bound."""
    centre = 0.0 if rng.random() < 0.7 else float(rng.normal())
    below, above = (float(10.0 ** rng.uniform(-3, 1)) for _ in range(2))
    lower, upper = centre - below, centre + above
    if rng.random() < 0.5:
        return {"lower": lower if rng.random() < 0.8 else None, "upper": upper if rng.random() < 0.8 else None}
    low = [lower if rng.random() < 0.7 else None for _ in range(m)]
    high = [upper if rng.random() < 0.7 else None for _ in range(m)]
    if rng.random() < 0.2:  # a fixed weight
        low[0] = high[0] = centre
    return {"lower": low, "upper": high}


def random_graph(rng: np.random.Generator, m: int, wild: bool, directed: bool, virtual: bool = True) -> Term:
    """Draw a graph with about 1.5 m edges, some of them dissimilar, possibly with one or two virtual nodes."""
    extra = int(rng.integers(1, 3)) if virtual and rng.random() < 0.15 else 0
    nodes = m + extra
    pairs = [(i, j) for i in range(nodes) for j in range(nodes) if (i != j if directed else i < j)]
    count = min(len(pairs), int(rng.integers(0, 2 * nodes + 1)))
    chosen = rng.permutation(len(pairs))[:count]
    weights = rng.uniform(0.5, 2.0, size=count)
    if rng.random() < 0.5:
        weights *= rng.choice([1.0, 1.0, -1.0], size=count)
    if wild and rng.random() < 0.3:
        weights *= 10.0 ** rng.uniform(-9, 9)
    places = sorted(rng.choice(nodes, size=extra, replace=False).tolist())
    edges = [[int(i), int(j)] for i, j in (pairs[place] for place in chosen)]
    return {"n_nodes": nodes, "edges": edges, "weights": weights.tolist(), "directed": directed, "virtual": places}


def _groups(rng: np.random.Generator, m: int, wild: bool) -> Term:
    """Draw a few groups, which may overlap, repeat each other, or (rarely; this is refused) be empty."""
    count = int(rng.integers(1, 7))
    groups = [rng.permutation(m)[: int(rng.integers(1, min(m, 8) + 1))].tolist() for _ in range(count)]
    if rng.random() < 0.3:
        groups.append(list(groups[0]))
    if rng.random() < 0.5:
        left = sorted(set(range(m)) - {j for group in groups for j in group})
        groups += [left] if left else []
    if rng.random() < 0.02:
        groups.append([])
    weights = np.sqrt([len(group) for group in groups]) * rng.choice([1.0, 0.5, 2.0], size=len(groups))
    if rng.random() < 0.15:
        weights[0] = 0.0
    if wild and rng.random() < 0.2:
        weights[-1] *= 10.0 ** rng.uniform(-6, 6)
    return {"groups": groups, "weights": weights.tolist(), "n_features": m}


def _dissimilarity(rng: np.random.Generator, n: int) -> Term:
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = rng.permutation(len(pairs))[: int(rng.integers(1, n + 1))]
    weights = rng.uniform(0.0, 2.0, size=len(chosen)).tolist() if rng.random() < 0.3 else None
    flipped = [list(pairs[place]) if rng.random() < 0.5 else list(pairs[place][::-1]) for place in chosen]
    return {"kind": "Dissimilarity", "pairs": flipped, "power": int(rng.integers(1, 3)), "weights": weights}
