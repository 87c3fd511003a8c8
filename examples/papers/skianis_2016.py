"""Skianis, Rousseau and Vazirgiannis (2016), Tables 1 to 8: groups of words from topics, vectors and word graphs.

    python examples/papers/skianis_2016.py --write-docs

Each kind of groups is used with the published algorithm (at most 100 iterations, stopped by the relative change of w).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from cells import computed
from numba import njit
from published_admm import Stops, Trunk
from reported import SKIANIS_MODELS, SKIANIS_TABLE_1, SKIANIS_TABLE_2, SKIANIS_TABLE_3, SKIANIS_TABLE_4, SKIANIS_TABLE_5
from reporting import COMPARED, Report, compared, options
from sentence_cells import MAIN, published_cell
from sentence_optimum import SentenceProblem
from text_data import MADE, PAIRS, REVIEWS, TextData, text_data
from text_models import CHANGE, MOST, best_point, result, solved

from cvxstructreg.datasets import load_word_vectors
from cvxstructreg.groups import EmbeddingGroups, GraphOfWordsGroups, Groups, LDAGroups

PROTOCOL = (
    "Data, vocabulary, development part and tuning are as in yogatama_smith_2014.py. Groups are built from the "
    "training documents without their labels.",
    "LDA and LSI: 1,000 topics (at most as many as training documents) of 10 words. LDA: scikit-learn's variational "
    "Bayes on all documents at once, 3 passes, random state 0. Communities: Louvain "
    "(without overlap, as in the paper) on the graph of words with a window of 4. Word vectors: "
    "2,000 clusters of all GloVe vectors, of which the words of the vocabulary are kept, extended by the 5 "
    "nearest words of each member.",
    "Strengths and rho 0.01, 0.1, 1, 10, 100, the grid of the paper. The published algorithm stops when the relative "
    "change of w in an iteration is at most 0.001, after at most 100 iterations.",
    "The standard error is that of a proportion. No regularization is a ridge of strength 1e-6; its relative gap of "
    "1e-4 leaves the accuracy open by about a point, as two runs showed.",
    "Overlapping communities, on science: label propagation with memories (SLPA, a method of the survey that the paper "
    "cites), 100 rounds; a word is in every community whose label fills at least a tenth of its memory.",
)
DIFFERENCES = (
    "The paper has LDA and LSI of gensim, and does not say how many passes LDA makes; we have scikit-learn's LDA and "
    "the singular vectors of the counts.",
    "The paper uses word2vec vectors; we use GloVe 6B (100 dimensions, 49,819 words).",
    "The paper does not say how it tokenised the text; Table 1 has the numbers of words. Of the movie reviews we use "
    "the words in at least 3 documents.",
    "electronics and kitchen: the paper has 1,440 training and 360 development documents, we have about 1,600 and 200.",
    "vote, books and dvd are not available. The window of the graph of words is not given in the paper.",
)
STRENGTHS = (1e2, 1e1, 1.0, 1e-1, 1e-2)
#: The number of passes of LDA, the rounds of the label propagation, and the least part of a word's memory.
PASSES, ROUNDS, LEAST = 3, 100, 0.1
#: Overlapping communities, which the paper tried without giving numbers, and the data sets where they are compared.
OVERLAP, COMPARED_ON = "overlapping communities", ("science",)
PLAIN, KINDS = ("none", "lasso", "ridge", "elastic net"), ("LSI", "word vectors", "graph of words", "sentences", "LDA")


@cache
def groups_of(name: str, kind: str, data_home: str | None, quick: bool) -> Groups:
    """The groups of one kind, from all training documents."""
    data = text_data(name, data_home)
    words, texts = data.vectorizer, data.texts
    topics = 5 if quick else min(1000, len(texts) - 1)
    if kind == "sentences":
        assert data.whole.groups is not None
        return data.whole.groups
    if kind == "LDA":
        model = LDAGroups(topics, vocabulary=words, max_iter=PASSES, learning_method="batch", random_state=0)
        return top_words(model.fit(texts).components_)
    if kind == "LSI":
        return top_words(right_singular_vectors(data.whole.X, topics))
    if kind in ("graph of words", OVERLAP):
        graph = GraphOfWordsGroups(4, vocabulary=words, random_state=0).fit(texts)
        return overlapping(graph.cooccurrence_) if kind == OVERLAP else graph.groups_
    vectors = load_word_vectors(data_home=data_home)
    return EmbeddingGroups(2000, 5, vocabulary=words, words=vectors.words, random_state=0).fit(vectors.data).groups_


def right_singular_vectors(X: Any, count: int) -> Any:
    """The first right singular vectors of X, from the eigenvectors of XX': there are fewer documents than words."""
    values, vectors = np.linalg.eigh((X @ X.T).toarray())
    largest = vectors[:, ::-1][:, :count] / np.sqrt(np.maximum(values[::-1][:count], 1e-12))
    return np.asarray((X.T @ largest).T)


def top_words(components: Any, count: int = 10) -> Groups:
    """The words with the largest entries in each topic."""
    d = components.shape[1]
    return Groups(np.argsort(-np.abs(components), axis=1, kind="stable")[:, : min(count, d)], n_features=d)


@njit(cache=True)
def memories(indptr: Any, indices: Any, weights: Any, rounds: int, seed: int) -> Any:
    """What every word heard: in each round its neighbours say labels from their memories; the most frequent stays."""
    n = len(indptr) - 1
    np.random.seed(seed)
    heard, votes = np.empty((n, rounds + 1), np.int32), np.zeros(n)
    heard[:, 0] = np.arange(n)
    said = np.empty(np.diff(indptr).max(), np.int32)
    for t in range(1, rounds + 1):
        for i in np.random.permutation(n):
            best, most = heard[i, 0], 0.0
            for k, p in enumerate(range(indptr[i], indptr[i + 1])):
                said[k] = heard[indices[p], np.random.randint(0, t)]
                votes[said[k]] += weights[p]
                if votes[said[k]] > most:
                    best, most = said[k], votes[said[k]]
            heard[i, t] = best
            votes[said[: indptr[i + 1] - indptr[i]]] = 0.0
    return heard


def overlapping(W: Any, rounds: int = ROUNDS) -> Groups:
    """The overlapping communities of a graph with weights W, each with at least two words."""
    W = sp.csr_array(W)
    heard = memories(W.indptr, W.indices, W.data.astype(float), rounds, 0)
    words = np.repeat(np.arange(len(heard)), heard.shape[1])
    counts = sp.csr_array((np.ones(heard.size), (heard.ravel(), words)), shape=W.shape)  # labels by words
    counts.sum_duplicates()
    counts.data[counts.data < LEAST * heard.shape[1]] = 0.0
    counts.eliminate_zeros()
    counts = sp.csr_array(counts[np.diff(counts.indptr) > 1])
    return Groups.from_csr(counts.indptr, counts.indices, W.shape[1]).merged()


def plain_cell(name: str, model: str, data_home: str | None, quick: bool) -> Any:
    """A model without groups at its optimum."""
    data, values = text_data(name, data_home), (1.0, 0.1) if quick else STRENGTHS
    kind, grid = model, [{"lam": lam} for lam in values]
    if model == "none":
        kind, grid = "ridge", [{"lam": 1e-6}]
    elif model == "elastic net":
        grid = [{"lam": a, "lam1": b} for a, b in itertools.product(values, repeat=2)]
    _, point = best_point(data, kind, grid) if len(grid) > 1 else (0.0, grid[0])
    began = time.process_time()
    final = solved(kind, data.whole, point)
    return result(data, final.coef, float(final.intercept), point, final.gap, time.process_time() - began)


def group_cell(name: str, kind: str, lam1: float, rho: float, data_home: str | None, quick: bool) -> Any:
    """The published algorithm on the training part for all strengths of the groups."""
    data, found = text_data(name, data_home), []
    groups, part = groups_of(name, kind, data_home, quick), data.training
    trunk = Trunk(part.X, part.y, groups, lam1, rho, kind == "sentences")
    for lam in (1.0, 0.1) if quick else STRENGTHS:
        run = Stops(part.X, part.y, groups, lam, lam1, rho, kind == "sentences", change=CHANGE, trunk=trunk)
        (w, b), _ = run.after(5 if quick else MOST)
        right = float(100.0 * data.development.right(w, b).mean())
        found.append({"lam": lam, "lam1": lam1, "rho": rho, "right": right, "features": int(np.count_nonzero(w))})
    return found


def final_cell(name: str, kind: str, lam: float, lam1: float, rho: float, data_home: str | None, quick: bool) -> Any:
    """The chosen model on all training documents, the optimum with the same strengths, and some of its groups."""
    data, groups = text_data(name, data_home), groups_of(name, kind, data_home, quick)
    part, point = replace(data.whole, groups=groups), {"lam": lam, "lam1": lam1}
    run = Stops(part.X, part.y, groups, lam, lam1, rho, kind == "sentences", change=CHANGE)
    began = time.process_time()
    (w, b), multipliers = run.after(5 if quick else MOST)
    seconds = time.process_time() - began
    problem = SentenceProblem(part.X, part.y, groups, lam, lam1)
    optimum = problem.solve()
    gap = optimum.gap_of(problem.objective(w, b))
    best = result(data, optimum.coef, optimum.intercept, point, optimum.gap, optimum.seconds)
    kept = result(data, w, b, point, gap, seconds) | {"rho": rho, "groups": len(groups), "iterations": run.count}
    several = np.bincount(groups.indices, minlength=groups.n_features) > 1
    kept |= {"largest": 100.0 * groups.sizes.max() / groups.n_features, "in several": 100.0 * several.mean()}
    return kept | {"optimum": best, "examples": examples(data, groups, multipliers, lam, w)}


def examples(data: TextData, groups: Groups, multipliers: Any, lam: float, w: Any) -> dict[str, list[str]]:
    """Groups whose copies are zero, and the groups with the largest weights whose copies are not."""
    words = data.vectorizer.get_feature_names_out()
    lengths = np.sqrt(np.add.reduceat(multipliers**2, groups.indptr[:-1]))
    removed = lengths < lam * groups.weights * (1.0 - 1e-9)
    order = np.argsort(-groups.norms(w), kind="stable")
    text = {number: " ".join(words[list(groups[number])][:8]) for number in range(len(groups))}
    kept = [text[number] for number in order if not removed[number]][:5]
    return {"= 0": [text[int(number)] for number in np.flatnonzero(removed)[:5]], "not 0": kept}


def run_data(name: str, kinds: tuple[str, ...], given: Any) -> dict[str, Any]:
    """All models of one data set."""
    base = {"name": name, "data_home": given.data_home, "quick": given.quick}
    found = dict(zip(PLAIN, computed(plain_cell, [base | {"model": m} for m in PLAIN], given), strict=True))
    grid = [(1.0, 1.0)] if given.quick else list(itertools.product(STRENGTHS, STRENGTHS))
    for kind in (*kinds, *([OVERLAP] if name in COMPARED_ON or given.quick else [])):
        if kind == "sentences":  # most of these fits are those of the other paper
            variant = {"name": name, "data_home": given.data_home} | MAIN
            cells = [{"variant": variant, "quick": given.quick, "lam1": lam1, "rho": rho} for lam1, rho in grid]
            every = [point for cell in computed(published_cell, cells, given) for point in cell or ()]
            tried = [point for point in every if point["ended"] and point["lam"] in STRENGTHS]
        else:
            cells = [base | {"kind": kind, "lam1": lam1, "rho": rho} for lam1, rho in grid]
            tried = [point for cell in computed(group_cell, cells, given) for point in cell or ()]
        if len(tried) < len(grid) * (1 if given.quick else len(STRENGTHS)):
            continue  # with --kept, a kind whose grid is not finished is left out
        best = max(tried, key=lambda point: (point["right"], -point["features"]))
        chosen = base | {"kind": kind} | {key: best[key] for key in ("lam", "lam1", "rho")}
        found[kind] = computed(final_cell, [chosen], given)[0]
    return {model: one for model, one in found.items() if one is not None}


def tables(results: dict[str, Any], report: Report, given: Any) -> None:
    """Tables 1 to 5, cell by cell."""
    rows: dict[str, list[Any]] = {number: [] for number in "12345"}
    for name, found in results.items():
        data = text_data(name, given.data_home)
        ours = [part.X.shape[0] for part in (data.training, data.development, data.test)]
        theirs = (None,) * 5 if given.quick else SKIANIS_TABLE_1[name]
        sizes = zip(theirs, [*ours, data.test.X.shape[1], data.sentences], strict=True)
        rows["1"].append([name, *(value for pair in sizes for value in pair)])
        for column, model in enumerate(SKIANIS_MODELS):
            if model not in found:
                continue
            one, label = found[model], name if column == 0 else ""
            paper = {"2": SKIANIS_TABLE_2.get(name), "3": SKIANIS_TABLE_3.get(name), "5": SKIANIS_TABLE_5.get(name)}
            values = {key: None if row is None or given.quick else row for key, row in paper.items()}
            error = (one["accuracy"] * (100.0 - one["accuracy"]) / data.test.X.shape[0]) ** 0.5
            accuracy = values["2"][column] if values["2"] else None
            optimum = one["optimum"]["accuracy"] if "optimum" in one else None
            rows["2"].append([label, model, *compared(accuracy, one["accuracy"], error), optimum])
            size = float(values["3"][column]) if values["3"] else None
            rows["3"].append([label, model, *compared(size, one["size"])[:3]])
            if column:
                seconds = float(values["5"][column - 1]) if values["5"] else None
                rows["5"].append([name if column == 1 else "", model, *compared(seconds, one["seconds"])[:2]])
        known = (None, None) if given.quick else SKIANIS_TABLE_4.get(name, (None, None))
        kinds = ("graph of words", "word vectors")
        rows["4"].append(
            [
                name,
                *itertools.chain(
                    *((p, found[k]["groups"] if k in found else None) for p, k in zip(known, kinds, strict=True))
                ),
            ]
        )
    names = ("training", "development", "test", "words", "sentences")
    both = ("paper", "ours")
    report.add("Table 1", ["", *(f"{one}, {two}" for one in names for two in both)], rows["1"])
    report.add("Table 2", ["", "", *COMPARED, "optimum, same strengths"], rows["2"])
    report.add("Table 3", ["", "", *COMPARED[:3]], rows["3"])
    report.add(
        "Table 4", ["", *(f"{one}, {two}" for one in ("graph of words", "word vectors") for two in both)], rows["4"]
    )
    report.add("Table 5", ["", "", "paper, seconds", "ours, CPU seconds"], rows["5"])


def communities(results: dict[str, Any], report: Report) -> None:
    """Overlapping communities beside those of Louvain. They are taken out of the results: no table has them."""
    rows = []
    for name, found in results.items():
        kinds = [kind for kind in ("graph of words", OVERLAP) if kind in found and OVERLAP in found]
        for kind in kinds:
            one = found[kind]
            error = (one["accuracy"] * (100.0 - one["accuracy"]) / len(one["right"])) ** 0.5
            label = "Louvain" if kind != OVERLAP else "overlapping"
            sizes = [one[key] for key in ("groups", "largest", "in several", "accuracy")]
            rows.append([name if kind != OVERLAP else "", label, *sizes, error, one["size"]])
        found.pop(OVERLAP, None)
    header = ["", "communities", "number", "largest, % of words", "words in several, %", "accuracy", "standard error"]
    if rows:
        report.add("Overlapping communities", [*header, "model size"], rows)


def findings(results: dict[str, Any], report: Report, given: Any) -> None:
    """What repeated, as lines of the page, and the states of Tables 1 to 5."""
    new, near, all_, wins, paper_wins, closer, faster, pairs = (
        ("LSI", "graph of words", "word vectors"),
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    )
    words, groups, lines = [], [], []
    for name, found in results.items():
        data, paper = text_data(name, given.data_home), dict(zip(SKIANIS_MODELS, SKIANIS_TABLE_2[name], strict=True))
        sizes = dict(zip(SKIANIS_MODELS, SKIANIS_TABLE_3[name], strict=True))
        words.append(100.0 * (data.test.X.shape[1] / SKIANIS_TABLE_1[name][3] - 1.0))
        for model, one in found.items():
            error = (one["accuracy"] * (100.0 - one["accuracy"]) / data.test.X.shape[0]) ** 0.5
            near += abs(one["accuracy"] - paper[model]) <= 2.0 * error
            closer += abs(one["size"] - sizes[model]) <= 10.0
            all_ += 1
        known = [model for model in new if model in found]
        ours = [max(found[model]["accuracy"] for model in kinds) for kinds in (known, PLAIN)]
        theirs = [max(paper[model] for model in kinds) for kinds in (known, PLAIN)]
        wins, paper_wins = wins + (ours[0] > ours[1]), paper_wins + (theirs[0] > theirs[1])
        lines.append(
            f"{name}: the best of {', '.join(known)} has {ours[0]:.2f} % (paper {theirs[0]:.2f}), the best of the "
            f"models without groups {ours[1]:.2f} % (paper {theirs[1]:.2f})."
        )
        if "sentences" in found and name in SKIANIS_TABLE_5:
            pairs += len(known)
            faster += sum(found[model]["seconds"] < found["sentences"]["seconds"] for model in known)
        groups += [
            f"{name}, {kind} {found[kind]['groups']} ({SKIANIS_TABLE_4[name][place]})"
            for place, kind in enumerate(new[1:])
            if kind in found and name in SKIANIS_TABLE_4
        ]
    lines.append(f"{near} of {all_} accuracies are within two standard errors of the paper's.")
    report.found(lines)
    count, left = len(results), f"run on {', '.join(results)}"
    others = [name for name in (*PAIRS, *REVIEWS) if name not in results]
    left += f"; not run: {', '.join(others)}" if others else ""
    without = f"{left}; vote, books, dvd: no data"
    missing = [f"{kind} on {name}" for name, found in results.items() for kind in KINDS if kind not in found]
    left += f"; not run: {', '.join(missing)}" if missing else ""
    left += "; vote, books, dvd: no data"
    judged = {True: "repeated", False: "not repeated (numbers)"}
    alike = sum(abs(off) <= 10.0 for off in words)
    sizes_text = f"on {alike} of {count} sets the number of words is within ten percent of the paper's"
    span = f"{min(words):+.1f} to {max(words):+.1f} percent"
    report.state("Table 1", f"{judged[2 * alike > count]}: {sizes_text} ({span}); {without}")
    text = f"new groups beat all models without groups on {wins} of {count} sets (paper {paper_wins})"
    report.state("Table 2", f"{judged[wins >= paper_wins]}: {text}; {near} of {all_} cells within two errors; {left}")
    report.state(
        "Table 3", f"{judged[closer >= 0.8 * all_]}: {closer} of {all_} sizes within ten percent of the words; {left}"
    )
    report.state("Table 4", f"not repeated (numbers), ours (paper): {'; '.join(groups)}; {without}")
    report.state(
        "Table 5", f"{judged[faster == pairs]}: {faster} of {pairs} new groups are faster than sentences; {without}"
    )


def main() -> None:
    """Run the data sets and print the paper's tables next to ours."""
    given = options(__doc__, (*PAIRS, *REVIEWS))
    report = Report("Skianis, Rousseau and Vazirgiannis 2016, Tables 1 to 8", PROTOCOL, DIFFERENCES, given.quick)
    kinds = ("LDA", "LSI", "graph of words") if given.quick else KINDS
    results = {name: run_data(name, kinds, given) for name in ((MADE,) if given.quick else given.parts)}
    results = {name: found for name, found in results.items() if any(kind in found for kind in kinds)}
    given.parts = tuple(results)
    communities(results, report)
    tables(results, report, given)
    first = results[next(iter(results))]
    for number, kind in (("6", "LSI"), ("7", "word vectors"), ("8", "graph of words")):
        if kind in first:
            rows = [[state, words] for state, found in first[kind]["examples"].items() for words in found]
            report.add(f"Table {number}: groups of {kind}", ["copies", "words"], rows)
            both = all(first[kind]["examples"].values())
            state = "repeated: groups of both kinds" if both else "not repeated (numbers): groups of only one kind"
            if not given.quick:
                report.state(f"Table {number}", f"{state} are found on {next(iter(results))}; {len(rows)} are shown")
    if not given.quick:
        findings(results, report, given)
    report.finish(given, lambda figure: draw(figure, results), "skianis_2016")


def draw(figure: Any, results: dict[str, Any]) -> None:
    """Draw one panel for each data set: bars for our accuracies, black marks for the paper's."""
    panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
    for axes, (name, found) in zip(panels, results.items(), strict=True):
        models = [model for model in SKIANIS_MODELS if model in found]
        axes.bar(range(len(models)), [found[model]["accuracy"] for model in models], label="ours")
        paper = dict(zip(SKIANIS_MODELS, SKIANIS_TABLE_2.get(name, (np.nan,) * len(SKIANIS_MODELS)), strict=True))
        axes.plot(range(len(models)), [paper[m] for m in models], "k_", markersize=14, markeredgewidth=2, label="paper")
        axes.set_xticks(range(len(models)), models, rotation=75, ha="right")
        axes.set_title(name)
    panels[0].set_ylabel("test accuracy in percent")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize="small")
    figure.set_size_inches(2.6 * len(results) + 1, 4.5)


if __name__ == "__main__":
    main()
