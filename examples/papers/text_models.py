"""The models of the two papers on groups of words: their penalties, fits, what is kept of them, and sentence scores."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from published_admm import Stops
from reported import YOGATAMA_POST_SCORES
from sentence_optimum import SentenceProblem
from text_data import Part, TextData, text_data

import cvxstructreg as csr

#: The published algorithm stops at this relative change of w, or after this many iterations.
CHANGE, MOST = 1e-3, 100
PUBLISHED, SAME, TUNED = "sentences", "optimum, same strengths", "optimum, own strengths"
EARLY, WEIGHTED = "early stop", "ridge by sentences"
#: The beginning of the post that the paper shows in its Table 3.
POST = "Subject: Accelerating the MacPlus"


def penalty_of(model: str, part: Part, point: dict[str, float]) -> Any:
    """The penalty of a model."""
    if model == "lasso":
        return point["lam"] * csr.L1()
    if model == "ridge":
        return point["lam"] * csr.Ridge()
    if model == "elastic net":
        return point["lam1"] * csr.L1() + point["lam"] * csr.Ridge()
    groups = part.groups
    assert groups is not None
    if model == WEIGHTED:
        return point["lam"] * csr.Ridge(np.maximum(number_of_copies(groups), 1.0))
    return point["lam"] * csr.GroupLasso(groups) + point["lam1"] * csr.L1()


def number_of_copies(groups: Any) -> Any:
    """N_j, in how many sentences a word is; with member weights, how often it occurs in them."""
    tokens = 1.0 if groups.member_weights is None else groups.member_weights**2
    return np.bincount(groups.indices, np.repeat(groups.weights, groups.sizes) * tokens, minlength=groups.n_features)


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution of the library."""

    coef: Any
    intercept: float
    objective: float
    gap: float
    solution: Any


def solved(model: str, part: Part, point: dict[str, float], start: Any = None) -> Any:
    """The optimum to a relative gap of 1e-4: a point with coef, intercept, objective and gap."""
    if model in (SAME, TUNED):
        return SentenceProblem(part.X, part.y, part.groups, point["lam"], point["lam1"]).solve(start)
    problem = csr.Problem(csr.Linear(part.X), csr.Logistic(part.y) + penalty_of(model, part, point))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", csr.InaccurateWarning)
        found = problem.solve(tol=1e-4, warm_start=start.solution if start is not None else None)
    return Solved(found.coef, float(found.intercept), found.objective, found.certificate.error, found)


def result(data: TextData, coef: Any, intercept: float, point: dict[str, float], gap: float, seconds: float) -> Any:
    """What is kept of a fitted model; ``right`` has one character for each test document."""
    right = data.test.right(coef, intercept)
    size = 100.0 * np.count_nonzero(coef) / coef.size
    kept = {"accuracy": 100.0 * right.mean(), "size": size, "point": point, "gap": gap, "seconds": seconds}
    return kept | {"right": "".join("1" if one else "0" for one in right)}


def best_point(data: TextData, model: str, grid: list[dict[str, float]]) -> tuple[float, dict[str, float]]:
    """The best development accuracy in percent, and its grid point; ties go to the sparsest model."""
    found, start = [], None
    for point in grid:
        start = solved(model, data.training, point, start)
        right = float(100.0 * data.development.right(start.coef, start.intercept).mean())
        found.append((right, -int(np.count_nonzero(start.coef)), point))
    right, _, point = max(found, key=lambda one: one[:2])
    return right, point


def best_inside(
    data: TextData, model: str, grid: dict[str, tuple[float, ...]], growth: int
) -> tuple[float, dict[str, float], int]:
    """As ``best_point``, on a grid of powers of ten that grows, at most ``growth`` times, until no edge is chosen.

    Also returns the number of points tried.
    """
    axes = {name: sorted(values, reverse=True) for name, values in grid.items()}
    found: dict[tuple[float, ...], tuple[float, int]] = {}
    while True:
        start = None
        for values in itertools.product(*axes.values()):
            if values not in found:
                start = solved(model, data.training, dict(zip(axes, values, strict=True)), start)
                right = float(100.0 * data.development.right(start.coef, start.intercept).mean())
                found[values] = right, -int(np.count_nonzero(start.coef))
        best = max(found, key=found.__getitem__)
        grew = False
        for values, chosen in zip(axes.values(), best, strict=True):
            if growth > 0 and chosen in (values[0], values[-1]):
                values[:] = [10.0 * chosen, *values] if chosen == values[0] else [*values, chosen / 10.0]
                grew = True
        growth -= 1
        if not grew:
            return found[best][0], dict(zip(axes, best, strict=True)), len(found)


def models_of(part: Part, points: dict[str, Any], published: dict[str, float]) -> tuple[dict[str, Any], Any]:
    """The weights and bias of the four models, and the multipliers of the sentences in the published algorithm."""
    run = Stops(part.X, part.y, part.groups, published["lam"], published["lam1"], published["rho"], True, change=CHANGE)
    point, multipliers = run.after(MOST)
    found = {"sentences": point}
    for name, strengths in points.items():
        solution = solved(name, part, strengths)
        found[name] = solution.coef, float(solution.intercept)
    return found, multipliers


def selected_sentences(part: Part, counts: Any, multipliers: Any, lam: float) -> list[str]:
    """For rows of counts, whether the copies of this sentence are nonzero: "yes", "no", or "-" if it has no words."""
    groups = part.groups
    assert groups is not None
    lengths = np.sqrt(np.add.reduceat(multipliers**2, groups.indptr[:-1]))
    kept = lengths >= lam * groups.weights * (1.0 - 1e-9)
    weights = np.ones(groups.n_entries) if groups.member_weights is None else groups.member_weights
    entries = [slice(*groups.indptr[g : g + 2]) for g in range(len(groups))]
    known = {(tuple(groups.indices[e]), tuple(np.rint(weights[e] ** 2))): kept[g] for g, e in enumerate(entries)}
    found = []
    for row in counts:
        words = np.flatnonzero(row)
        tokens = row[words] if groups.member_weights is not None else np.ones(words.size)
        state = known.get((tuple(words), tuple(tokens)))
        found.append("-" if state is None else "yes" if state else "no")
    return found


def sentence_table(variant: dict[str, Any], points: dict[str, Any], published: dict[str, float]) -> Any:
    """The header and rows of the table: whether a sentence is selected, and the paper's score of it for each model.

    The score is log p(true class) with all sentences minus log p(true class) without this sentence.
    """
    data = text_data(*(variant[key] for key in ("name", "data_home", "split", "vocabulary", "copies")))
    models, multipliers = models_of(data.whole, points, published)
    number = next((n for n, text in enumerate(data.texts) if POST in text), None)
    if number is None:
        lengths = np.array([len(data.splitter(text)) for text in data.texts])
        number = int(np.flatnonzero((lengths >= min(8, lengths.max())) & (data.whole.y == 1))[0])
    side = 1.0 if data.whole.y[number] == 1 else -1.0
    sentences = data.splitter(data.texts[number])
    counts = data.vectorizer.transform(sentences).toarray().astype(float)
    selected = selected_sentences(data.whole, counts, multipliers, published["lam"])
    rows = []
    for place, sentence in enumerate(sentences):
        row: list[Any] = [" ".join(sentence.split())[:60].replace("|", "/"), selected[place]]
        for w, b in models.values():
            every = side * float(counts.sum(axis=0) @ w + b)
            rest = every - side * float(counts[place] @ w)
            score = float(np.logaddexp(0.0, -rest) - np.logaddexp(0.0, -every))
            row.append(score if abs(score) > 1e-3 else None)
        flat = " ".join(sentence.split())
        reported = YOGATAMA_POST_SCORES.items() if POST in data.texts[number] else ()
        scores = [known for phrase, known in reported if phrase in flat]
        rows.append([*row, "; ".join(filter(None, scores)) or None])
    return [["sentence", "selected", *models, "paper"], rows]
