"""Skianis, Rousseau and Vazirgiannis (2016), Tables 2 to 5: groups of words from topics, vectors and word graphs.

    python examples/papers/skianis_2016.py --json skianis.json --figure skianis.png

Each kind of groups is used twice: at the certified optimum, and with the published algorithm and its early stop.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
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
    "Data, vocabulary, development part and tuning are as in yogatama_smith_2014.py. Groups are built from the "
    "training documents without their labels.",
    "There are two sets of groups of each kind; one of them is chosen on the development documents, like the "
    "strengths. LDA: 100 topics of 10 or 100 words. LSI: 100 or 500 topics of 10 words. Communities: Louvain on the "
    "graph of words (window of 4) with resolution 1 or 10. Word vectors: 100 or 1,000 clusters of GloVe vectors, "
    "extended by the 5 nearest words of each member.",
    "The published algorithm is also run with every word outside all groups as its own group and, as a control, "
    "with single words alone and no groups from the documents.",
    "Published algorithm: both strengths 0.01, 0.1, 1 and rho 0.1, 1, 10, 100, stopped after 1 iteration. The best "
    "18 of these 36 runs on the development documents continue to 3 iterations, the best 6 of those to 10, and the "
    "best 2 of those to 30.",
    "Optimum: strengths 0.01, 0.1, 1 for the groups, 0.1, 1 for the words.",
    "Sentences are not run again. The results are read from yogatama.json, written by yogatama_smith_2014.py, if "
    "this file is in the folder of the JSON output.",
)
DIFFERENCES = (
    "The paper uses word2vec vectors; we use GloVe 6B (100 dimensions). Words without a vector belong to no group.",
    "The paper has 1,000 topics of 10 words for LDA and for LSI; we have at most 100 and 500 topics.",
    "The paper makes up to 2,000 clusters of the whole vector space and then keeps the words of the vocabulary "
    "(594 to 691 groups remain); we cluster the vectors of the vocabulary.",
    "The paper's grid is 0.01, 0.1, 1, 10, 100 for both strengths and rho; ours ends at 1 for the strengths.",
    "The paper's vocabulary has 16,282 to 25,787 words; ours has about half as many, because a word must occur in"
    " two training documents and consist of letters.",
    "The paper's six sentiment sets are not run.",
)

#: A function that creates sets of groups by name when they are needed.
GroupMaker = Callable[[], dict[str, Groups]]
GRID = Truncation(stops=(1, 3, 10, 30), kept=(18, 6, 2))


def top_words(components: Any, count: int) -> Groups:
    """The words with the largest entries in each topic."""
    d = components.shape[1]
    return Groups(np.argsort(-np.abs(components), axis=1, kind="stable")[:, : min(count, d)], n_features=d)


def with_single_words(groups: Groups) -> Groups:
    """The same groups, plus one group for each word outside all groups."""
    alone = np.setdiff1d(np.arange(groups.n_features), groups.indices)
    return Groups(
        [*groups, *alone[:, None]], n_features=groups.n_features, weights=[*groups.weights, *np.ones(len(alone))]
    )


def makers(pair: Pair, data_home: str | None, quick: bool, seed: int) -> dict[str, GroupMaker]:
    """Functions that build each kind of groups from the documents."""
    words, texts = pair.vectorizer, pair.whole.texts
    few, many = (10, 20) if quick else (100, 500)

    def lda() -> dict[str, Groups]:
        topics = LDAGroups(few, vocabulary=words, random_state=seed).fit(texts).components_
        return {f"{few} topics of {count} words": top_words(topics, count) for count in (10, 100)}

    def lsi() -> dict[str, Groups]:
        topics = LSIGroups(many, vocabulary=words, random_state=seed).fit(texts).components_
        return {f"{count} topics of 10 words": top_words(topics[:count], 10) for count in (few, many)}

    def communities() -> dict[str, Groups]:
        return {
            f"resolution {resolution:g}": GraphOfWordsGroups(
                4, vocabulary=words, resolution=resolution, random_state=seed
            )
            .fit(texts)
            .groups_
            for resolution in (1.0, 10.0)
        }

    kinds: dict[str, GroupMaker] = {"LDA": lda, "LSI": lsi, "graph of words": communities}
    try:
        vectors = load_word_vectors(words.get_feature_names_out(), data_home=data_home)
    except DataNotFoundError:
        if not quick:
            raise
        progress("no word vectors found: skipped in the quick run")
        return kinds

    def clusters() -> dict[str, Groups]:
        builders = {
            f"{count} clusters": EmbeddingGroups(count, 5, vocabulary=words, words=vectors.words, random_state=seed)
            for count in (few, 2 * many)
        }
        return {name: builder.fit(vectors.data).groups_ for name, builder in builders.items()}

    return kinds | {"word vectors": clusters}


def problem_of(groups: Groups) -> Make:
    """The group lasso plus an L1 term; only the L1 term acts on features outside all groups."""

    def make(part: Part, point: dict[str, float]) -> csr.Problem:
        penalty = point["first"] * csr.GroupLasso(groups) + point["second"] * csr.L1()
        return csr.Problem(csr.Linear(part.X), csr.Logistic(part.y) + penalty)

    return make


#: The ways to fit, and the name of the control without groups from the documents.
GROUPS, SINGLE, OPTIMUM = WAYS = ("published", "published, and single words", "optimum")
ALONE = "single words alone"
#: A fit, the name of its groups, and the groups.
Chosen = tuple[Fit, str, Groups]


def best(found: list[Chosen]) -> Chosen:
    """The best fit on the development documents; ties go to the smallest model."""
    return max(found, key=lambda one: (one[0].development, -one[0].size))


def run_pair(name: str, given: Any) -> dict[str, dict[str, Chosen]]:
    """All fits for every kind of groups."""
    pair = load_pair(name, given.data_home, given.quick, given.seed)
    values = strengths(given.quick)[-3:]
    points = [{"first": a, "second": b} for a, b in itertools.product(values, values[:2])]
    grid = QUICK if given.quick else GRID
    chosen: dict[str, dict[str, Chosen]] = {}

    fits: dict[tuple[str, int], Fit] = {}

    def published(kind: str, sets: dict[str, Groups]) -> Chosen:
        found = []
        for label, groups in sets.items():
            key = f"{kind}, {label}", len(groups)  # equal numbers mean that no single words were added
            if key not in fits:
                fits[key], _ = truncated(pair, dict.fromkeys((id(pair.training), id(pair.whole)), groups), grid)
            fit = fits[key]
            found.append((fit, label, groups))
            progress(f"{name}: {kind}: {label}: dev {fit.development:.2f}, {time.process_time():.0f} s")
        return best(found)

    for kind, make_groups in makers(pair, given.data_home, given.quick, given.seed).items():
        sets = make_groups()
        chosen[kind] = {
            GROUPS: published(kind, sets),
            SINGLE: published(kind, {label: with_single_words(groups) for label, groups in sets.items()}),
            OPTIMUM: best([(tuned(pair, problem_of(groups), points), label, groups) for label, groups in sets.items()]),
        }
    words = pair.whole.X.shape[1]
    chosen[ALONE] = {SINGLE: published(ALONE, {ALONE: Groups(np.arange(words)[:, None], n_features=words)})}
    for kind, ways in chosen.items():
        for way, (fit, label, _) in ways.items():
            progress(f"{name}: {kind}: {way} {fit.accuracy:.2f} {label} {fit.chosen}")
    return chosen


SENTENCES = {GROUPS: "sentences, published", OPTIMUM: "sentences, optimum"}


def of_sentences(json_path: Path | None, table: str) -> dict[tuple[str, str], float]:
    """The results of yogatama_smith_2014.py by pair and way, if its JSON file is in the folder of ours."""
    path = json_path.with_name("yogatama.json") if json_path is not None else None
    if path is None or not path.exists():
        return {}
    content = json.loads(path.read_text(encoding="utf-8"))["tables"][table]
    found, pair = {}, ""
    for row in content["rows"]:
        pair = row[0] or pair
        values = dict(zip(content["header"], row, strict=True))
        if values.get("", "here") == "here":
            found |= {(pair, way): values[column] for way, column in SENTENCES.items()}
    return found


def main() -> None:
    """Run the pairs and print the paper's tables next to ours."""
    given = options(__doc__)
    report = Report("Skianis, Rousseau and Vazirgiannis 2016, Tables 2 to 5", PROTOCOL, DIFFERENCES)
    names = PAIRS[:1] if given.quick else PAIRS
    results = {name: run_pair(name, given) for name in names}
    kinds = list(next(iter(results.values())))
    accuracy, size = "Test accuracy in percent", "Model size in percent of the words"
    sentences = {table: of_sentences(given.json, table) for table in (accuracy, size)}
    tables: dict[str, list[list[Any]]] = {accuracy: [], size: []}
    for name, found in results.items():
        papers = [PAPER[name].get(kind) for kind in (*kinds, "sentences")]
        tables[accuracy].append([name, "paper", *papers])
        for way in WAYS:
            fits = [found[kind][way][0] if way in found[kind] else None for kind in kinds]
            for table, value in ((accuracy, "accuracy"), (size, "size")):
                row = [getattr(fit, value) if fit is not None else None for fit in fits]
                tables[table].append(["" if table == accuracy else name, way, *row, sentences[table].get((name, way))])
    for table, rows in tables.items():
        report.add(table, ["pair", "", *kinds, "sentences"], rows)
    made = [
        [name, way, *(described(*found[kind][way][1:]) for kind in kinds if kind != ALONE)]
        for name, found in results.items()
        for way in (GROUPS, SINGLE, OPTIMUM)
    ]
    report.add(
        "Chosen groups, their number, and the percentage of the words that they cover", ["pair", "", *kinds[:-1]], made
    )
    details = {
        name: {
            f"{kind}, {way}": {"groups": label, "development": fit.development, "gap": fit.gap} | fit.chosen
            for kind, ways in found.items()
            for way, (fit, label, _) in ways.items()
        }
        for name, found in results.items()
    }
    report.note("chosen", details)
    shown = {
        name: {kind: {way: fit.accuracy for way, (fit, _, _) in ways.items()} for kind, ways in found.items()}
        for name, found in results.items()
    }
    report.finish(given.json, given.figure, lambda figure: draw(figure, shown))


def described(label: str, groups: Groups) -> str:
    """The name of a set of groups, their number, and the percentage of words that they cover."""
    return f"{label}: {len(groups):,}, {100.0 * len(np.unique(groups.indices)) / groups.n_features:.0f} %"


def draw(figure: Any, accuracies: dict[str, dict[str, dict[str, float]]]) -> None:
    """Draw one panel for each pair: bars for the ways to fit, and a black mark for the paper."""
    panels = figure.subplots(1, len(accuracies), sharey=True, squeeze=False)[0]
    for axes, (name, found) in zip(panels, accuracies.items(), strict=True):
        places = np.arange(len(found))
        for shift, way in zip((-0.27, 0.0, 0.27), WAYS, strict=True):
            axes.bar(places + shift, [ways.get(way, np.nan) for ways in found.values()], 0.27, label=f"here, {way}")
        paper = [PAPER[name].get(kind, np.nan) for kind in found]
        axes.plot(places, paper, "k_", markersize=16, markeredgewidth=2, label="paper")
        axes.set_xticks(places, list(found), rotation=60, ha="right")
        axes.set_title(name)
    panels[0].set_ylim(bottom=75)
    panels[0].set_ylabel("test accuracy in percent")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize="small")
    figure.set_size_inches(3 * len(accuracies) + 1, 4.5)


if __name__ == "__main__":
    main()
