"""Sandler, Talukdar, Ungar and Blitzer (2008), Table 1 and Figures 1 to 3: networks of features.

    python examples/papers/sandler_2008.py --write-docs

Figure 1 classifies all 20 newsgroups with few labelled documents by ridge, principal components, locally linear
embedding of the features, Laplacians and the feature network. Table 1 and Figures 2 and 3, on the sentiment of product
reviews, are in sandler_reviews.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from cells import computed
from reported import SANDLER_GAINS, SANDLER_WORDS
from reporting import Report, options, standard_error
from sandler_reviews import REVIEW_DIFFERENCES, REVIEW_PROTOCOL, review_tables
from scipy.sparse.linalg import cg
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.model_selection import KFold, train_test_split
from sklearn.neighbors import NearestNeighbors

import cvxstructreg as csr
from cvxstructreg.datasets import fetch_20newsgroups, load_corpus
from cvxstructreg.graphs import CooccurrenceGraph

PROTOCOL = (
    "Newsgroups: log(1 + count) of the words that occur in at least 20 of the 18,846 documents, without English stop "
    "words. The network is built from the presence of words in all documents without their labels: 25 nearest "
    "neighbours by cosine, at least 0.10. Alpha acts on every word, also without neighbours, as in the paper's M.",
    "Figure 1 (left): the same number of training documents of each class, drawn at random from the training part and "
    "the same for all methods. Figure 1 (right): drawn without regard to the class. Accuracy is measured on the whole "
    "test part, which is later in time. The table has the mean and the standard error of three draws.",
    "Strengths are chosen for each size by 3-fold cross-validation on the training documents of the first draw: beta "
    "1, 0.1 or 0.01 for ridge, PCR and LLE; (alpha, beta) = (100, 1), (10, 0.1) or (1, 0.01) with a network.",
    "PCR uses 200 singular vectors of all documents. LLE uses the eigenvectors of the 200 smallest eigenvalues of "
    "(I - P)'(I - P), scaled to unit variance. Ridge is then fitted on these features.",
    "Local/global consistency: (I - 0.99 S)^-1 Y on the graph of 10 nearest documents by cosine of tf-idf; all "
    "documents are in the graph.",
    *REVIEW_PROTOCOL,
)
DIFFERENCES = (
    "Newsgroups: the paper does not say which documents it tests on, and does not list the values of its curves; it "
    "gives the range of the gain over ridge.",
    "The paper chooses the number of components of PCR and LLE on the test set; we use 200, as the paper.",
    "Figure 1 (left): the paper has five draws, we have three.",
    "Figure 1 (right): the accuracies of ASO are those of another paper, which we do not have; ASO is not repeated.",
    *REVIEW_DIFFERENCES,
)
#: Pairs of a network strength alpha and a ridge strength beta.
Grid = Sequence[tuple[float, float]]
PLAIN: Grid = ((0.0, 1.0), (0.0, 0.1), (0.0, 0.01))
NETWORK: Grid = ((100.0, 1.0), (10.0, 0.1), (1.0, 0.01))
SIZES, DRAWS = (100, 500, 2000), 3
METHODS = ("ridge", "feature network", "Laplacian", "normalized Laplacian", "PCR", "LLE")
CONSISTENCY = "local/global consistency"


class Newsgroups:
    """The documents, their network, and the features of each method."""

    def __init__(self, data_home: str | None, quick: bool) -> None:
        if quick:
            corpus = load_corpus()
            halves = train_test_split(corpus.data, corpus.target, test_size=0.5, random_state=0)
            texts, test_texts, self.y, self.test_y = halves
        else:
            train, test = (fetch_20newsgroups(part, data_home=data_home) for part in ("train", "test"))
            texts, test_texts, self.y, self.test_y = train.data, test.data, train.target, test.target
        least = min(20, len(texts) // 20)
        vectorizer = CountVectorizer(min_df=least, stop_words="english", token_pattern=r"(?u)\b[a-zA-Z]{2,}\b")
        self.counts = sp.csr_array(vectorizer.fit_transform([*texts, *test_texts]), dtype=float)
        self.everything = self.counts.log1p()
        self.X, self.test_X = self.everything[: len(texts)], self.everything[len(texts) :]
        presence = sp.csr_array(self.counts > 0, dtype=float)
        self.directed = CooccurrenceGraph(min(25, presence.shape[1] - 1), 0.10).fit(presence).graph_
        self.dimension = min(200, presence.shape[1] // 4)

    def penalty(self, method: str) -> Any:
        """The penalty in addition to the ridge, or None."""
        if method == "feature network":
            return csr.Quadratic(factor=sp.csr_array(sp.eye_array(self.X.shape[1]) - self.directed.transition()))
        if "Laplacian" in method:
            return csr.Laplacian(self.directed.symmetrized(), normalized=method != "Laplacian")
        return None

    def mapped(self, method: str) -> Any:
        """The linear map to fewer features, or None."""
        if method == "PCR":
            return TruncatedSVD(self.dimension, random_state=0).fit(self.everything).components_.T
        if method != "LLE":
            return None
        P = self.directed.transition()
        away = sp.eye_array(P.shape[0]) - P
        dense = (away.T @ away).toarray().astype(np.float32)
        vectors = smallest_eigenvectors(dense, min(self.dimension, P.shape[0] - 1))
        return vectors / np.maximum((self.everything @ vectors).std(axis=0), 1e-12)


def smallest_eigenvectors(matrix: Any, count: int, shift: float = 1e-3, rounds: int = 8) -> Any:
    """Eigenvectors of the smallest eigenvalues of a positive semidefinite matrix, which is overwritten.

    Subspace iteration with the inverse of matrix + shift I, on a subspace 1.5 times as large as requested. The last
    vectors are inaccurate, which does no harm to an embedding.
    """
    size, extra = len(matrix), min(count // 2 + 10, len(matrix) - count)
    matrix.flat[:: size + 1] += shift
    factor = scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False)
    basis = np.random.default_rng(0).standard_normal((size, count + extra)).astype(matrix.dtype)
    for _ in range(rounds):
        basis = np.linalg.qr(basis)[0]
        image = scipy.linalg.cho_solve(factor, basis, check_finite=False)
        _, turn = np.linalg.eigh(basis.T @ image)  # ascending: the smallest eigenvalues of the matrix come last
        basis = image @ turn
    return np.linalg.qr(basis[:, ::-1])[0][:, :count].astype(float)


news_of = cache(Newsgroups)


@cache
def prepared(method: str, data_home: str | None, quick: bool) -> tuple[Any, Any, Any]:
    """Training features, test features and penalty of a method."""
    news = news_of(data_home, quick)
    map_ = news.mapped(method)
    X, test = (news.X, news.test_X) if map_ is None else (np.asarray(news.X @ map_), np.asarray(news.test_X @ map_))
    return X, test, news.penalty(method)


def fitted(X: Any, y: Any, penalty: Any, alpha: float, beta: float) -> csr.Solution:
    """The model with alpha times the penalty plus beta times the ridge."""
    terms = csr.Multinomial(y) + beta * csr.Ridge()
    return csr.Problem(csr.Linear(X), terms if penalty is None else terms + alpha * penalty).solve(tol=1e-3)


def accuracy(solution: csr.Solution, X: Any, y: Any, classes: Any) -> float:
    """Percentage of correct classes."""
    return 100.0 * float(np.mean(classes[(np.asarray(X @ solution.coef) + solution.intercept).argmax(axis=1)] == y))


def drawn(y: Any, size: int, balanced: bool, draw: int) -> Any:
    """Training documents: the same number of each class, or any."""
    order = np.random.default_rng(draw).permutation(len(y))
    if not balanced:
        return order[:size]
    classes = np.unique(y)
    return np.concatenate([order[y[order] == label][: size // len(classes)] for label in classes])


def newsgroup_cell(method: str, size: int, balanced: bool, data_home: str | None, quick: bool) -> Any:
    """Test accuracies of the draws of one size, and the strengths."""
    news = news_of(data_home, quick)
    if method == CONSISTENCY:
        S = document_graph(data_home, quick)
        draws = [drawn(news.y, size, balanced, draw) for draw in range(1 if quick else DRAWS)]
        return {"accuracies": [consistency(news, S, rows) for rows in draws], "alpha, beta": [0.99, 0.0]}
    X, test, penalty = prepared(method, data_home, quick)
    grid = PLAIN if penalty is None else NETWORK
    found: list[float] = []
    for draw in range(1 if quick else DRAWS):
        rows = drawn(news.y, size, balanced, draw)
        if draw == 0:
            alpha, beta = grid[1] if quick else chosen(X[rows], news.y[rows], penalty, grid)
        solution = fitted(X[rows], news.y[rows], penalty, alpha, beta)
        found.append(accuracy(solution, test, news.test_y, np.unique(news.y[rows])))
    return {"accuracies": found, "alpha, beta": [alpha, beta]}


def chosen(X: Any, y: Any, penalty: Any, grid: Grid) -> tuple[float, float]:
    """The strengths with the most correct documents in 3-fold cross-validation; ties go to the first pair."""
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    right = []
    for alpha, beta in grid:
        each = [(fitted(X[a], y[a], penalty, alpha, beta), a, b) for a, b in folds]
        right.append(sum(len(b) * accuracy(solution, X[b], y[b], np.unique(y[a])) for solution, a, b in each))
    return grid[int(np.argmax(right))]


@cache
def document_graph(data_home: str | None, quick: bool) -> Any:
    """D^-1/2 W D^-1/2 of the graph of 10 nearest documents."""
    features = TfidfTransformer().fit_transform(sp.csr_matrix(news_of(data_home, quick).counts))
    near = NearestNeighbors(n_neighbors=10, metric="cosine", algorithm="brute").fit(features)
    W = sp.csr_array(near.kneighbors_graph(mode="distance"))
    W.data = np.maximum(1.0 - W.data, 1e-6)
    W = W.maximum(W.T)
    scale = sp.diags_array(1.0 / np.sqrt(np.maximum(W.sum(axis=1), 1e-12)))
    return sp.csr_array(scale @ W @ scale)


def consistency(news: Newsgroups, S: Any, rows: Any) -> float:
    """The accuracy of local/global consistency with some labelled documents."""
    matrix = sp.csr_array(sp.eye_array(S.shape[0]) - 0.99 * S)
    classes, scores = np.unique(news.y), []
    for label in classes:
        start = np.zeros(S.shape[0])
        start[rows[news.y[rows] == label]] = 1.0
        scores.append(cg(matrix, start, rtol=1e-5)[0][len(news.y) :])
    return 100.0 * float(np.mean(classes[np.argmax(scores, axis=0)] == news.test_y))


Curves = tuple[Sequence[int], dict[str, list[float]]]


def newsgroup_table(report: Report, title: str, methods: Sequence[str], balanced: bool, given: Any) -> Curves:
    """The table of one half of Figure 1, and its curves."""
    sizes = (30,) if given.quick else SIZES
    base = {"balanced": balanced, "data_home": given.data_home, "quick": given.quick}
    cells = [base | {"method": method, "size": size} for method in methods for size in sizes]
    results = iter(computed(newsgroup_cell, cells, given))
    curves, rows, strengths = {}, [], []
    for method in methods:
        each = [next(results) for _ in sizes]
        if None in each:  # with --kept, a method that is not finished is left out
            continue
        curves[method] = [float(np.mean(one["accuracies"])) for one in each]
        rows += [[method, *curves[method]], ["standard error", *(standard_error(one["accuracies"]) for one in each)]]
        strengths.append([method, *("{:g}, {:g}".format(*one["alpha, beta"]) for one in each)])
    if not curves:
        return sizes, curves
    if curves.keys() >= {"ridge", "feature network"}:
        gains = [new - old for new, old in zip(curves["feature network"], curves["ridge"], strict=True)]
        paper = "" if given.quick else f" (paper: {SANDLER_GAINS[0]:g} to {SANDLER_GAINS[1]:g})"
        rows.append([f"gain of the network over ridge{paper}", *gains])
    report.add(title, ["training documents", *sizes], rows)
    report.add(f"{title}: chosen alpha, beta", ["training documents", *sizes], strengths)
    return sizes, curves


def newsgroup_state(panels: dict[str, Curves], report: Report) -> str:
    """The state of Figure 1. The paper: the network is ahead of all others, on the right with enough documents."""
    (sizes, left), (_, right) = panels.values()
    network, others = left["feature network"], [values for name, values in left.items() if name != "feature network"]
    best = [network[k] - max(one[k] for one in others) for k in range(len(sizes))]
    ridge = [network[k] - left["ridge"][k] for k in range(len(sizes))]
    away = [a - b for a, b in zip(right["feature network"], right[CONSISTENCY], strict=True)]
    state = "repeated" if min(*best, *ridge, *away[1:]) > 0.0 else "not repeated (numbers)"
    text = [", ".join(f"{value:+.1f}" for value in values) for values in (ridge, best, away)]
    numbers = ", ".join(f"{size:,}" for size in sizes)
    text_of_all = (
        f"{state}: with {numbers} documents the network is {text[0]} points from ridge "
        f"(paper +{SANDLER_GAINS[0]:g} to +{SANDLER_GAINS[1]:g}), {text[1]} from the best other method, and (right) "
        f"{text[2]} from local/global consistency; ASO: no data"
    )
    report.state("Figure 1", text_of_all)
    return f"Figure 1 {text_of_all}."


def main() -> None:
    """Run all experiments and print the tables."""
    given = options(__doc__, ("newsgroups", "any class", "Figure 2", "Figure 3"))
    report = Report("Sandler and others 2008, Table 1 and Figures 1 to 3", PROTOCOL, DIFFERENCES, given.quick)
    panels: dict[str, Curves] = {}
    if "newsgroups" in given.parts:
        panels["20 newsgroups"] = newsgroup_table(report, "Figure 1 (left)", METHODS, True, given)
        words = news_of(given.data_home, given.quick).X.shape[1]
        paper = None if given.quick else SANDLER_WORDS
        report.add("Words of the newsgroups", ["", "paper", "ours"], [["words", paper, words]])
    if "any class" in given.parts:
        both = ("feature network", CONSISTENCY)
        panels["20 newsgroups, any class"] = newsgroup_table(report, "Figure 1 (right)", both, False, given)
    complete = [len(curves) for _, curves in panels.values()] == [len(METHODS), 2]
    lines: list[str] = []
    if complete and not given.quick:
        lines.append(newsgroup_state(panels, report))
    if not given.quick:
        panels |= review_tables(report, given, lines)
        report.found(lines)
    panels = {name: panel for name, panel in panels.items() if panel[1]}
    report.finish(given, lambda figure: draw_curves(figure, panels), "sandler_2008")


def draw_curves(figure: Any, panels: dict[str, Curves]) -> None:
    """Plot the accuracy against the number of training documents."""
    for axes, (name, (sizes, curves)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for method, values in curves.items():
            axes.plot(sizes, values, marker="o", label=method, linewidth=2.8 if "network" in method else 1.2)
        axes.set_xscale("log")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("training documents")
        axes.set_ylabel("test accuracy in percent")
        axes.set_title(name, fontsize="medium")
        axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.15))
    figure.set_size_inches(4 * len(panels), 5.4)


if __name__ == "__main__":
    main()
