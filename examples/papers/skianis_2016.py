"""Skianis, Rousseau and Vazirgiannis (2016), Tables 2 to 5: groups of words from topics, vectors and word graphs.

    python examples/papers/skianis_2016.py --json skianis.json --figure skianis.png

Each kind of groups is run twice: at the certified optimum, and by the published algorithm with its early stop.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from newsgroup_pairs import (
    PAIRS,
    QUICK,
    Fit,
    Make,
    Pair,
    Part,
    Truncation,
    load_pair,
    strengths,
    truncated,
    tuned,
)
from reporting import Report, options, progress

import cvxstructreg as csr
from cvxstructreg.datasets import DataNotFoundError, load_word_vectors
from cvxstructreg.groups import EmbeddingGroups, GraphOfWordsGroups, Groups, LDAGroups, LSIGroups

#: Test accuracies in percent in the paper's tables.
PAPER = {
    "science": {"LDA": 96.8, "LSI": 96.8, "sentences": 94.2, "graph of words": 96.7, "word vectors": 96.8},
    "sports": {"LDA": 95.9, "LSI": 96.4, "sentences": 96.6, "graph of words": 95.9, "word vectors": 94.6},
    "religion": {"LDA": 91.8, "LSI": 90.7, "sentences": 93.4, "graph of words": 91.1, "word vectors": 91.6},
    "computer": {"LDA": 89.1, "LSI": 88.5, "sentences": 90.4, "graph of words": 88.5, "word vectors": 91.1},
}
PROTOCOL = (
    "data, vocabulary, development part and choice as in yogatama_smith_2014.py",
    "LDA and LSI with 100 topics of 10 words; Louvain communities of the graph of words with a window of 4; "
    "100 clusters of GloVe vectors, each word also with its 5 nearest",
    "groups are made from the training documents without their labels; the grid of the published algorithm is smaller: "
    "strengths 0.1 and 1 for the groups, 0.01 and 0.1 for the words, rho 1 and 10; the best three after 10 iterations "
    "on the development documents go on to 30; at the optimum strengths 0.01, 0.1, 1 for the groups, 0.1, 1 for words",
    "sentences are in yogatama_smith_2014.py, with a larger grid, and not run again here",
)
DIFFERENCES = (
    "the paper uses word2vec vectors, here GloVe 6B (100 dimensions); words without a vector are in no group",
    "the paper's numbers of topics and clusters and its grid are not given in full",
)

GroupMaker = Callable[[], dict[int, Groups]]
GRID = Truncation((1.0, 0.1), (0.1, 0.01), (1.0, 10.0), (10, 30), (3,))


def makers(pair: Pair, data_home: str | None, quick: bool, seed: int) -> dict[str, GroupMaker]:
    """How each kind of groups is made from the documents: by the id of the part."""
    words, size = pair.vectorizer, 20 if quick else 100

    def both(groups: Groups) -> dict[int, Groups]:
        return dict.fromkeys((id(pair.training), id(pair.whole)), groups)

    def fitted(builder: Any) -> GroupMaker:
        return lambda: both(builder.fit(pair.whole.texts).groups_)

    kinds: dict[str, GroupMaker] = {
        "LDA": fitted(LDAGroups(size, vocabulary=words, random_state=seed)),
        "LSI": fitted(LSIGroups(size, vocabulary=words, random_state=seed)),
        "graph of words": fitted(GraphOfWordsGroups(4, vocabulary=words, random_state=seed)),
    }
    try:
        vectors = load_word_vectors(words.get_feature_names_out(), data_home=data_home)
    except DataNotFoundError:
        if not quick:
            raise
        progress("no word vectors here: left out of the quick run")
        return kinds

    def clusters() -> dict[int, Groups]:
        builder = EmbeddingGroups(size, 5, vocabulary=words, words=vectors.words, random_state=seed)
        return both(builder.fit(vectors.data).groups_)

    return kinds | {"word vectors": clusters}


def problem_of(groups: dict[int, Groups]) -> Make:
    """The group lasso with absolute values; features in no group are held by these alone."""

    def make(part: Part, point: dict[str, float]) -> csr.Problem:
        penalty = point["first"] * csr.GroupLasso(groups[id(part)]) + point["second"] * csr.L1()
        return csr.Problem(csr.Linear(part.X), csr.Logistic(part.y) + penalty)

    return make


def run_pair(name: str, given: Any) -> tuple[dict[str, dict[str, Fit]], dict[str, list[float]]]:
    """Both fits for every kind of groups, and what the groups are like."""
    pair = load_pair(name, given.data_home, given.quick, given.seed)
    values = strengths(given.quick)[-3:]
    optimum = [{"first": a, "second": b} for a, b in itertools.product(values, values[:2])]
    grid = QUICK if given.quick else GRID
    fits, shapes = {}, {}
    for kind, make_groups in makers(pair, given.data_home, given.quick, given.seed).items():
        began = time.perf_counter()
        groups = make_groups()
        shapes[kind] = [len(groups[id(pair.whole)]), time.perf_counter() - began]
        fits[kind] = {
            "optimum": tuned(pair, problem_of(groups), optimum),
            "published": truncated(pair, groups, grid)[0],
        }
        found = ", ".join(f"{way} {fit.accuracy:.2f} {fit.chosen}" for way, fit in fits[kind].items())
        progress(f"{name}: {kind}: {found}")
    return fits, shapes


def main() -> None:
    """Run the pairs and print the paper's tables beside ours."""
    given = options(__doc__)
    report = Report("Skianis, Rousseau and Vazirgiannis 2016, Tables 2 to 5", PROTOCOL, DIFFERENCES)
    results, shapes = {}, {}
    for name in PAIRS[:1] if given.quick else PAIRS:
        results[name], shapes[name] = run_pair(name, given)
    kinds = list(next(iter(results.values())))
    rows: list[list[Any]] = []
    sizes: list[list[Any]] = []
    for name, fits in results.items():
        rows.append([name, "paper", *(PAPER[name][kind] for kind in kinds)])
        for way in ("published", "optimum"):
            rows.append(["", f"here, {way}", *(fits[kind][way].accuracy for kind in kinds)])
            sizes.append([name, way, *(fits[kind][way].size for kind in kinds)])
    report.add("Test accuracy in percent", ["pair", "", *kinds], rows)
    report.add("Model size in percent of the words", ["pair", "", *kinds], sizes)
    made = [
        [name, *(f"{int(count):,} ({seconds:.1f} s)" for count, seconds in kind.values())]
        for name, kind in shapes.items()
    ]
    report.add("Number of groups, and seconds to make them", ["pair", *kinds], made)
    chosen = {
        name: {f"{kind}, {way}": fit.chosen for kind, both in fits.items() for way, fit in both.items()}
        for name, fits in results.items()
    }
    report.note("chosen", chosen)
    report.finish(given.json, given.figure, lambda figure: draw(figure, results))


def draw(figure: Any, results: dict[str, dict[str, dict[str, Fit]]]) -> None:
    """One panel for each pair: published algorithm, optimum, and the paper's figure as a black mark."""
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for axes, (name, fits) in zip(panels, results.items(), strict=True):
        places = np.arange(len(fits))
        for shift, way in ((-0.2, "published"), (0.2, "optimum")):
            axes.bar(places + shift, [both[way].accuracy for both in fits.values()], 0.4, label=way)
        axes.plot(places, [PAPER[name][kind] for kind in fits], "k_", markersize=14, label="paper")
        axes.set_xticks(places, list(fits), rotation=60, ha="right")
        axes.set_title(name)
    panels[0].set_ylim(bottom=75)
    panels[0].set_ylabel("test accuracy in percent")
    panels[-1].legend(fontsize="small", loc="lower right")
    figure.set_size_inches(3 * len(results) + 1, 4.5)


if __name__ == "__main__":
    main()
