"""Random Huber functions, norms of blocks, penalties after a linear map, and CVXPY expressions, for a recipe."""

from __future__ import annotations

from typing import Any

import numpy as np

from cvxstructreg.crosscheck.terms.usual import Term, strength, typical_pull

#: The share of problems with such a penalty, and the share of those that act on the scores.
SHARE, ON_SCORES = 0.12, 0.2
#: Expressions of each column of the weights, by name.
FORMS = ("norm_inf", "two largest", "power", "steps", "softened")


def composed_terms(
    rng: np.random.Generator, model: dict[str, Any], wild: bool, losses: list[Term], penalties: list[Term]
) -> list[Term]:
    """Return the penalties with one more, or with one in place of another."""
    n, d = np.shape(model["matrix"])
    on = "scores" if rng.random() < ON_SCORES else "weights"
    m = n if on == "scores" else d
    if m < 2 or rng.random() > SHARE:
        return penalties
    pull = typical_pull(np.asarray(model["matrix"], dtype=float), losses) if on == "weights" else 1.0
    kept = [term for term in penalties if term["on"] != on or rng.random() < 0.3]
    return [*kept, {**_penalty(rng, m), "on": on, "scale": strength(rng, pull, wild)}]


def _penalty(rng: np.random.Generator, m: int) -> Term:
    how = rng.random()
    if how < 0.3:
        return {"kind": "FromExpression", "form": str(rng.choice(FORMS))}
    if how < 0.55:
        return _outer(rng, m, ("HuberPenalty", "BlockNorms"))
    K = rng.normal(size=(int(rng.integers(1, m + 2)), m))
    if rng.random() < 0.5:
        K *= rng.random(K.shape) < 0.4
    outer = _outer(rng, len(K), ("L1", "HuberPenalty", "BlockNorms"))
    return {"kind": "compose", "outer": outer, "factor": K.tolist(), "sparse": bool(rng.random() < 0.5)}


def _outer(rng: np.random.Generator, m: int, kinds: tuple[str, ...]) -> Term:
    kind = str(rng.choice(kinds))
    if kind == "BlockNorms":
        cuts = np.unique([0, m, *rng.integers(0, m + 1, size=3)])
        return {"kind": kind, "indptr": cuts.tolist(), "weights": rng.uniform(0.0, 2.0, size=len(cuts) - 1).tolist()}
    weights = (rng.uniform(0.0, 2.0, size=m) * (rng.random(m) < 0.8)).tolist() if rng.random() < 0.4 else None
    return {"kind": kind, "weights": weights} | ({"M": float(10.0 ** rng.uniform(-2, 1))} if kind != "L1" else {})
