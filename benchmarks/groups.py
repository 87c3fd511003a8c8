"""The group lasso benchmarks: generated data of any size, and sections for ``run.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
import scipy.sparse as sp
from measure import Result, ours, timed

import cvxstructreg as csr

Make = Callable[[], csr.Problem]
CVXPY_OPTIONS = {
    "CLARABEL": {"max_threads": 1},
    "SCS": {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 20_000},
}


def sentences_like_text(
    n_documents: int, n_words: int, n_sentences: int, length: float = 17.8, seed: int = 0
) -> tuple[Any, np.ndarray, csr.Groups]:
    """Documents of random sentences over words with very different frequencies: X, labels, and the sentences as groups.

    Word j has a probability proportional to (j + 1)^-0.9. X holds word counts. One true weight in twenty is nonzero.
    Documents are drawn in batches, so that little more memory is used than for the result.
    """
    rng = np.random.default_rng(seed)
    cumulated = np.cumsum(1.0 / np.arange(1, n_words + 1) ** 0.9)
    cumulated /= cumulated[-1]
    sizes = np.clip(rng.poisson(length, n_sentences), 1, n_words // 2)
    first = np.searchsorted(np.sort(rng.integers(0, n_documents, n_sentences)), np.arange(n_documents + 1))
    words = np.empty(sizes.sum(), dtype=np.int32)  # entries that are never written use no memory
    columns, counts = np.empty(len(words), dtype=np.int32), np.empty(len(words))
    starts, rows = np.zeros(n_sentences + 1, dtype=np.int64), np.zeros(n_documents + 1, dtype=np.int64)
    for documents in np.array_split(np.arange(n_documents), max(1, n_sentences // 50_000)):
        a, b = first[documents[0]], first[documents[-1] + 1]
        drawn = np.searchsorted(cumulated, rng.random(sizes[a:b].sum()))
        keys = np.unique(np.repeat(np.arange(b - a), sizes[a:b]) * n_words + drawn)
        starts[a + 1 : b + 1] = starts[a] + np.cumsum(np.bincount(keys // n_words, minlength=b - a))
        words[starts[a] : starts[b]] = keys % n_words
        owner = np.repeat(
            np.repeat(np.arange(len(documents)), np.diff(first[documents[0] : documents[-1] + 2])), sizes[a:b]
        )
        keys, found = np.unique(owner * n_words + drawn, return_counts=True)
        i, j = documents[0], documents[-1] + 1
        rows[i + 1 : j + 1] = rows[i] + np.cumsum(np.bincount(keys // n_words, minlength=len(documents)))
        columns[rows[i] : rows[j]], counts[rows[i] : rows[j]] = keys % n_words, found
    X = sp.csr_array((counts[: rows[-1]], columns[: rows[-1]], rows), shape=(n_documents, n_words))
    groups = csr.Groups.from_csr(starts, words[: starts[-1]], n_words)
    truth = rng.normal(size=n_words) * (rng.random(n_words) < 0.05)
    z = X @ truth
    y = (z + z.std() * 0.3 * rng.logistic(size=n_documents) > np.median(z)).astype(int)
    return X, y, groups


PAIRS = {
    "science": data.MED_SPACE,
    "sports": ("rec.sport.baseball", "rec.sport.hockey"),
    "religion": ("alt.atheism", "soc.religion.christian"),
    "computer": ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware"),
}


def sentence_lasso(categories: tuple[str, ...], lam1: float = 0.5, lam: float = 0.1) -> tuple[csr.Groups, Make]:
    """The sentence regularizer on two newsgroups: its groups, and a function that creates the problem."""
    X, y, texts, vectorizer = data.newsgroups(categories)
    groups = data.sentences(texts, vectorizer)

    def make() -> csr.Problem:
        return csr.Problem(csr.Linear(X), csr.Logistic(y) + lam1 * csr.L1() + lam * csr.GroupLasso(groups))

    return groups, make


def sentences(seconds: float = 120.0) -> list[Result]:
    """The sentence regularizer on sci.med / sci.space, against the paper's ADMM and ours, with a time limit."""
    groups, make = sentence_lasso(PAIRS["science"])
    section, work = "sentence group lasso, med/space", f"{len(groups):,} sentences"
    target = "< 0.5 s, <= 1/100 of sentence_admm to 1e-2"
    results = [ours(section, work, make, "group_newton", 1e-6, target=target)]
    for rho in (0.1, 1.0, 10.0):
        slow = ours(section, work, make, "sentence_admm", 1e-2, rho=rho, time_limit=seconds, repeats=0)
        results.append(replace(slow, solver=f"sentence_admm to 1e-2, rho = {rho:g}"))
    slow = ours(section, work, make, "admm", 1e-4, time_limit=seconds, repeats=0)
    return [*results, replace(slow, solver="admm to 1e-4")]


def other_pairs() -> list[Result]:
    """The same strengths on three other pairs."""
    results = []
    for name in ("sports", "religion", "computer"):
        groups, make = sentence_lasso(PAIRS[name])
        work = f"{name}, {len(groups):,} sentences"
        results.append(ours("sentence group lasso, other pairs", work, make, "group_newton", 1e-6))
    return results


def against_cvxpy(solvers: tuple[str, ...] = ("CLARABEL", "SCS", "ECOS")) -> list[Result]:
    """200 documents, 1,900 words, 2,000 sentences: group_newton at a certified gap of 1e-6 against CVXPY's solvers.

    The CVXPY times include compilation. Clarabel and ECOS run at their default tolerances, SCS at 1e-6.
    """
    section, results = "group lasso against CVXPY", []
    for lam1, lam in ((0.5, 0.1), (0.2, 0.2)):
        X, y, groups = sentences_like_text(200, 1900, 2000, length=8.0)

        def make(lam1: float = lam1, lam: float = lam, made: Any = (X, y, groups)) -> csr.Problem:
            penalty = lam1 * csr.L1() + lam * csr.GroupLasso(made[2])
            return csr.Problem(csr.Linear(made[0]), csr.Logistic(made[1]) + penalty)

        work = f"200 x 1,900, 2,000 groups, lam1 = {lam1:g}, lam = {lam:g}"
        target = "1/200 of Clarabel, 1/40 of SCS"
        results.append(ours(section, work, make, "group_newton", 1e-6, target=target, repeats=9))
        for name in solvers:
            reference = make().to_cvxpy()
            options = CVXPY_OPTIONS.get(name, {})
            _, seconds, cold = timed(partial(reference.solve, name, **options), 0)
            gap = reference.value / make().solve("group_newton", tol=1e-9).objective - 1.0
            results.append(Result(section, work, f"cvxpy {name} (objective error)", seconds, cold, gap))
    return results


def growth(lam1: float = 0.002, lam: float = 1e-5) -> list[Result]:
    """Time against the number of groups over two decades; strengths are proportional to the number of documents."""
    results = []
    for n_groups in (2_500, 7_900, 25_000, 79_000, 250_000):
        n = n_groups // 50
        X, y, groups = sentences_like_text(n, 5000, n_groups)

        def make(made: Any = (X, y, groups), n: int = n) -> csr.Problem:
            penalty = lam1 * n * csr.L1() + lam * n * csr.GroupLasso(made[2])
            return csr.Problem(csr.Linear(made[0]), csr.Logistic(made[1]) + penalty)

        work = f"{n_groups:,} groups, {groups.n_entries + X.nnz:,} entries and values"
        results.append(ours("group lasso, cost growth", work, make, "group_newton", 1e-4))
    return results


def giant(share: float = 1.0) -> list[Result]:
    """37,850 documents and 2.5 million sentences in a fresh process: number of passes and peak memory."""
    code = f"import groups; groups.print_giant({share!r})"
    here = Path(__file__).resolve().parent
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    work = f"{found['documents']:,} documents, {found['groups']:,} groups, {found['entries']:,} entries"
    work += f"; {found['seconds'] / found['pass']:.0f} passes, {found['peak'] / 1e9:.2f} GB"
    target = "gap 1e-4, <= 200 passes, <= 3 GB"
    section, cold = "giant group lasso", float("nan")
    first = Result(section, work, "group_newton", found["seconds"], cold, found["gap"], target)
    return [first, Result(section, work, "one combined pass over X and the groups", found["pass"], cold, float("nan"))]


def print_giant(share: float) -> None:
    """Solve the giant problem in this process, and print time and memory as a line of JSON."""
    import resource

    from cvxstructreg.forms.compiled_groups import add_adjoint, norm_sum

    X, y, groups = sentences_like_text(int(37_850 * share), 10_000, int(2_500_000 * share))
    penalty = csr.GroupLasso(groups)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 50.0 * share * csr.L1() + 0.01 * penalty)
    warm_up = sentences_like_text(300, 500, 2000)
    warm_objective = csr.Logistic(warm_up[1]) + 0.5 * csr.L1() + 0.05 * csr.GroupLasso(warm_up[2])
    csr.Problem(csr.Linear(warm_up[0]), warm_objective).solve("group_newton")
    began = time.process_time()
    solution = problem.solve("group_newton", tol=1e-4)
    seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    w, slope, q, out = np.ones(X.shape[1]), np.ones(X.shape[0]), np.ones(groups.n_entries), np.zeros(X.shape[1])
    starts, indices, radii = np.array(groups.indptr), penalty.split()[1].indices, np.array(groups.weights)
    passes = []
    for _ in range(4):
        began = time.process_time()
        X @ w, X.T @ slope, norm_sum(starts, indices, radii, w), add_adjoint(indices, q, out, 1.0)
        passes.append(time.process_time() - began)
    found = {
        "documents": X.shape[0], "groups": len(groups), "entries": groups.n_entries, "seconds": seconds, "peak": peak,
        "pass": float(np.median(passes[1:])), "gap": solution.certificate.relative_gap,
        "nonzero": int(np.count_nonzero(solution.coef)),
    }  # fmt: skip
    print(json.dumps(found))


SECTIONS = {
    "sentences": sentences,
    "other_pairs": other_pairs,
    "group_cvxpy": against_cvxpy,
    "group_growth": growth,
    "giant": giant,
}
NEED_NEWSGROUPS = {"sentences", "other_pairs"}
