"""Other libraries for the group lasso, in their best configuration and in our conventions: a section for ``run.py``.

A peer is stopped when the error of its objective, relative to the bound that we prove, is at most 1e-6. It gets the
fewest iterations (in steps of a factor 1.5), or the loosest tolerance, that reach this error. If it does not reach the
error within a minute, its best error is shown. Of several configurations, the best one after five seconds is used.
"gap" in the table is this error. The table also shows our certificate of the peer's weights; computed from the weights
alone, it is only an upper bound of the error. No model has an intercept, because some peers have none.

group-lasso, asgl and skglm accept one group per column, so they do not support overlapping groups. copt supports them
through its primal-dual method on copies of the weights, and SPAMS through its ADMM for squared loss (its proximal
gradient method has only maximum norms for them). copt gets a vectorised prox instead of its own loop over the groups.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import data
import numpy as np
import scipy.sparse as sp
from groups import sentences_like_text
from measure import Result

import cvxstructreg as csr

ACCURACY, REPEATS = 1e-6, 3
#: CPU seconds to find the best configuration of a library, and to run the best configuration.
SCOUTING, SECONDS = 5.0, 60.0
ITERATIONS = tuple(int(10 * 1.5**k) for k in range(30))
TOLERANCES = tuple(10.0 ** (-k / 2) for k in range(2, 25))
PEERS = ("copt", "spams", "group_lasso", "skglm", "asgl")


class Task(NamedTuple):
    """Sum of losses + l1 ||w||_1 + lam sum_g ||w_g||."""

    X: Any
    y: np.ndarray
    groups: csr.Groups
    l1: float
    lam: float
    loss: str

    @property
    def is_disjoint(self) -> bool:
        """Whether the task is a plain group lasso, which all peers support."""
        return not self.l1 and self.groups.is_disjoint

    def problem(self) -> csr.Problem:
        """The same task as a problem of this library."""
        loss = csr.Logistic(self.y) if self.loss == "logistic" else csr.Squared(self.y)
        penalty = self.lam * csr.GroupLasso(self.groups)
        return csr.Problem(
            csr.Linear(self.X, intercept=False), loss + (penalty + self.l1 * csr.L1() if self.l1 else penalty)
        )


class Peer(NamedTuple):
    """A fit for each level of accuracy; a level is a number of iterations or a tolerance."""

    name: str
    fit: Callable[[float], np.ndarray]
    levels: Sequence[float]


def peers(task: Task) -> Iterator[list[Peer]]:
    """The installed peers that support the task, each with its configurations."""
    makers: dict[str, Any] = {"copt": _copt if task.is_disjoint else _copt_copies}
    if task.is_disjoint:
        makers |= {"spams": _spams_flat, "group_lasso": _group_lasso}
        if not sp.issparse(task.X):
            makers |= {"skglm": _skglm, "asgl": _asgl}
        elif task.loss == "squared":
            makers |= {"skglm": _skglm}  # its prox-Newton method does not accept a sparse X
    elif task.loss == "squared":
        makers |= {"spams": _spams_admm}
    for name, make in makers.items():
        if find_spec(name):
            yield list(make(task))


def group_peers() -> Iterator[Result]:
    """Run all tasks with all peers."""
    missing = [name for name in PEERS if not find_spec(name)]
    if missing:
        print(f"group_peers: skipped, not installed: {', '.join(missing)}")
    for work, task in tasks().items():
        yield from contest(work, task)


def tasks() -> dict[str, Task]:
    """Overlapping sentences of a text, disjoint groups of five columns, and disjoint clusters of words."""
    found = {}
    X, labels, groups = sentences_like_text(200, 1900, 2000, length=8.0)
    size = "200 x 1,900, 2,000 overlapping groups"
    for l1, lam in ((0.5, 0.1), (0.2, 0.2)):
        found[f"{size}, logistic, lam1 = {l1}, lam = {lam}"] = Task(X, labels, groups, l1, lam, "logistic")
    signs = 2.0 * labels - 1.0
    found[f"{size}, squared, lam1 = 0.5, lam = 0.1"] = Task(X, signs, groups, 0.5, 0.1, "squared")
    rng = np.random.default_rng(0)
    n, d = 1000, 2000
    X = rng.normal(size=(n, d))
    truth = np.repeat(rng.normal(size=d // 5) * (rng.random(d // 5) < 0.05), 5)
    scores = X @ truth + np.linalg.norm(truth) * 0.5 * rng.normal(size=n)
    disjoint = csr.Groups.from_labels(np.repeat(np.arange(d // 5), 5))
    for loss, y in (("logistic", (scores > 0).astype(int)), ("squared", scores)):
        task = Task(X, y, disjoint, 0.0, 1.0, loss)
        lam = 0.1 * csr.lambda_max(task.problem())
        found[f"1,000 x 2,000 dense, 400 disjoint groups, {loss}, 0.1 lambda_max"] = task._replace(lam=lam)
    if data.available():
        X, y, clusters = word_clusters()
        size = f"{X.shape[0]:,} x {X.shape[1]:,} sparse, {len(clusters):,} disjoint clusters of words"
        for loss, target in (("logistic", y), ("squared", 2.0 * y - 1.0)):
            task = Task(X, target, clusters, 0.0, 1.0, loss)
            lam = 0.1 * csr.lambda_max(task.problem())
            found[f"{size}, {loss}, 0.1 lambda_max"] = task._replace(lam=lam)
    return found


def word_clusters(n_clusters: int = 1000) -> tuple[Any, np.ndarray, csr.Groups]:
    """Words of sci.med and sci.space, clustered by the documents they occur in; clusters are contiguous columns."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.preprocessing import normalize

    X, y, _, _ = data.newsgroups(data.MED_SPACE)
    places = normalize(TruncatedSVD(30, random_state=0).fit_transform(normalize(sp.csr_array(X.T))))
    labels = MiniBatchKMeans(n_clusters, random_state=0, n_init=1).fit_predict(places)
    order = np.argsort(labels, kind="stable")
    return sp.csr_array(X[:, order]), y, csr.Groups.from_labels(labels[order])


def contest(work: str, task: Task) -> Iterator[Result]:
    """Run our solvers, then the peers at an equal error of the objective."""
    section, problem = "group lasso, peers", task.problem()
    bound = problem.solve(tol=1e-9).certificate.lower_bound
    for solver in ("group_descent", "group_newton", "fista") if task.is_disjoint else ("auto",):
        solution, seconds, first = _timed(lambda solver=solver: task.problem().solve(solver, tol=ACCURACY))
        gap = f"certified {solution.certificate.relative_gap:.0e}"
        yield Result(section, work, solution.solver, seconds, first, solution.objective / bound - 1.0, gap)
    for library in peers(task):
        with warnings.catch_warnings(), _quiet():
            warnings.simplefilter("ignore")
            peer, rung = _best(library, problem, bound)
        gap = f"certified {csr.certify(problem, rung.coef).relative_gap:.0e}"
        note = gap if rung.error <= ACCURACY else f"1e-6 not reached, {gap}"
        name = f"{peer.name}, {'tol' if rung.level < 1 else 'iterations'} {rung.level:.3g}"
        yield Result(section, work, name if len(peer.levels) > 1 else peer.name, rung.seconds, np.nan, rung.error, note)


class Rung(NamedTuple):
    """One fit of a peer."""

    error: float
    seconds: float
    level: float
    coef: np.ndarray


def _best(library: Sequence[Peer], problem: csr.Problem, bound: float) -> tuple[Peer, Rung]:
    """The best configuration of a library, found in short runs, and its first accurate fit, or its most accurate one.

    The times exclude compilation: compilation happens at an early level, and a short accurate fit is repeated.
    """
    scouted = [(peer, _climb(peer, problem, bound, 0.0, SCOUTING)) for peer in library]
    peer, rung = min(scouted, key=lambda one: (max(one[1].error, ACCURACY), one[1].seconds))
    if rung.error > ACCURACY and len(peer.levels) > 1:
        rung = min(rung, _climb(peer, problem, bound, rung.level, SECONDS), key=lambda one: one.error)
    if rung.error <= ACCURACY and rung.seconds < 2.0:
        rung = rung._replace(seconds=_timed(lambda: peer.fit(rung.level))[1])
    return peer, rung


def _climb(peer: Peer, problem: csr.Problem, bound: float, after: float, limit: float) -> Rung:
    """Fit with increasing accuracy until a fit is accurate enough or the time is up; return the most accurate fit."""
    spent, best = 0.0, Rung(np.inf, 0.0, peer.levels[0], np.zeros(problem.model.n_weights))
    for level in peer.levels[peer.levels.index(after) + 1 if after else 0 :]:
        began = time.process_time()
        coef = peer.fit(level)
        seconds = time.process_time() - began
        spent += seconds
        best = min(best, Rung(problem.value(coef) / bound - 1.0, seconds, level, coef), key=lambda one: one.error)
        if best.error <= ACCURACY or spent > limit:
            break
    return best


def _timed(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result, the median CPU time of the warm runs, and the time of the first run."""
    times = []
    for _ in range(REPEATS + 1):
        began = time.process_time()
        result = run()
        times.append(time.process_time() - began)
    return result, float(np.median(times[1:])), times[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the output of compiled code."""
    saved = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def _copt(task: Task) -> Iterator[Peer]:
    """Accelerated proximal gradient with backtracking."""
    import copt

    n, smooth = len(task.y), _copt_loss(task).f_grad
    prox = _prox_of_blocks(task.groups.indptr, task.lam / n)

    def fit(iterations: float, accelerated: bool) -> np.ndarray:
        how = {"tol": 0.0, "max_iter": int(iterations), "accelerated": accelerated, "jac": True}
        return copt.minimize_proximal_gradient(smooth, np.zeros(task.X.shape[1]), prox, step="backtracking", **how).x

    yield Peer("copt, accelerated proximal gradient", partial(fit, accelerated=True), ITERATIONS)
    yield Peer("copt, proximal gradient", partial(fit, accelerated=False), ITERATIONS)


def _copt_copies(task: Task) -> Iterator[Peer]:
    """Condat's primal-dual method: f(w) + l1 ||w||_1 + h(Kw), with Kw the copies of the weights.

    The steps are fixed, 1/sigma = L/2 + tau ||K||^2, with three ratios of the two parts; the line search was slower.
    """
    import copt

    n, d = len(task.y), task.X.shape[1]
    indices, indptr = task.groups.indices, task.groups.indptr
    K = sp.csr_matrix((np.ones(len(indices)), indices, np.arange(len(indices) + 1)), shape=(len(indices), d))
    square_of_K = float(np.bincount(indices).max())  # K'K is diagonal, with the number of groups of each column
    threshold, lipschitz = task.l1 / n, float(_copt_loss(task).lipschitz)
    smooth, groups = _copt_loss(task).f_grad, _prox_of_blocks(indptr, task.lam / n)

    def shrink(w: np.ndarray, step: float) -> np.ndarray:
        return np.sign(w) * np.maximum(np.abs(w) - step * threshold, 0.0)

    def fit(iterations: float, ratio: float) -> np.ndarray:
        tau = ratio * lipschitz / 2.0 / square_of_K
        sigma = 1.0 / ((1.0 + ratio) * lipschitz / 2.0)
        how = {"tol": 0.0, "max_iter": int(iterations), "step_size": sigma, "step_size2": tau, "line_search": False}
        return copt.minimize_primal_dual(smooth, np.zeros(d), shrink, groups, K, **how).x

    for ratio in (1e-3, 1e-2, 1e-1):
        yield Peer(f"copt, primal-dual, ratio {ratio:g}", partial(fit, ratio=ratio), ITERATIONS)


def _copt_loss(task: Task) -> Any:
    import copt

    loss = copt.loss.LogLoss if task.loss == "logistic" else copt.loss.SquareLoss
    X = sp.csr_matrix(task.X) if sp.issparse(task.X) else task.X
    return loss(X, task.y.astype(float))  # both are means over the rows


def _prox_of_blocks(indptr: np.ndarray, strength: float) -> Callable[[np.ndarray, float], np.ndarray]:
    sizes = np.diff(indptr)

    def prox(v: np.ndarray, step: float) -> np.ndarray:
        norms = np.sqrt(np.add.reduceat(v * v, indptr[:-1]))
        return v * np.repeat(np.maximum(1.0 - step * strength / np.maximum(norms, 1e-300), 0.0), sizes)

    return prox


def _spams_flat(task: Task) -> Iterator[Peer]:
    """The proximal gradient method of SPAMS; its logistic loss is a mean, its squared loss a sum."""
    import spams

    n = len(task.y)
    X = sp.csc_matrix(task.X) if sp.issparse(task.X) else np.asfortranarray(task.X)
    start, is_logistic = np.zeros((task.X.shape[1], 1), order="F"), task.loss == "logistic"
    target = np.asfortranarray((np.where(task.y == 1, 1.0, -1.0) if is_logistic else task.y)[:, None])
    numbers = np.repeat(np.arange(1, len(task.groups) + 1), np.diff(task.groups.indptr)).astype(np.int32)
    how = {
        "loss": "logistic" if is_logistic else "square",
        "regul": "group-lasso-l2",
        "lambda1": task.lam / n if is_logistic else task.lam,
        "groups": numbers,
        "numThreads": 1,
        "tol": 1e-14,
    }

    def fit(iterations: float) -> np.ndarray:
        return spams.fistaFlat(target, X, start, max_it=int(iterations), **how)[:, 0]

    yield Peer("spams, FISTA", fit, ITERATIONS)


def _spams_admm(task: Task) -> Iterator[Peer]:
    """The ADMM of SPAMS for sums of norms of overlapping groups; the L1 term is one more group for each column."""
    import spams

    d = task.X.shape[1]
    X, start = np.asfortranarray(task.X.toarray()), np.zeros((d, 1), order="F")
    indicator = sp.csr_matrix((np.ones(len(task.groups.indices)), task.groups.indices, task.groups.indptr))
    members = sp.vstack([indicator, sp.eye(d)]).T.tocsc().astype(bool)
    strengths = np.concatenate([np.full(len(task.groups), task.lam), np.full(d, task.l1)])
    none = sp.csc_matrix((len(strengths), len(strengths)), dtype=bool)
    graph = {"eta_g": strengths, "groups": none, "groups_var": members}
    how = {"loss": "square", "regul": "graph-l2", "admm": True, "lambda1": 1.0, "numThreads": 1, "tol": 1e-14}

    def fit(iterations: float, c: float) -> np.ndarray:
        target = np.asfortranarray(task.y[:, None])
        return spams.fistaGraph(target, X, start, graph, max_it=int(iterations), c=c, **how)[:, 0]

    for c in (0.1, 1.0, 10.0):
        yield Peer(f"spams, ADMM, c = {c:g}", partial(fit, c=c), ITERATIONS)


def _group_lasso(task: Task) -> Iterator[Peer]:
    """FISTA with restarts; steps along half the gradient give a factor 2 in the strength (see ``csr.conventions``).

    The classifier has weights for both classes. At the optimum the second is the negative of the first, so a group of
    differences w has the norm ||w|| / sqrt(2) in group-lasso.
    """
    from group_lasso import GroupLasso, LogisticGroupLasso

    is_logistic = task.loss == "logistic"
    lam = task.lam * (np.sqrt(2.0) if is_logistic else 1.0)
    strengths = csr.conventions.to_group_lasso(lam, 0.0, len(task.y), group_weights=None)
    numbers = np.repeat(np.arange(len(task.groups)), np.diff(task.groups.indptr))

    def fit(iterations: float) -> np.ndarray:
        model = (LogisticGroupLasso if is_logistic else GroupLasso)(
            groups=numbers, n_iter=int(iterations), tol=0.0, fit_intercept=False, supress_warning=True, random_state=0,
            **strengths,
        ).fit(task.X, task.y)  # fmt: skip
        return model.coef_[:, 1] - model.coef_[:, 0] if is_logistic else model.coef_[:, 0]

    yield Peer("group-lasso", fit, ITERATIONS)


def _skglm(task: Task) -> Iterator[Peer]:
    """Working sets, with prox-Newton steps for logistic and block coordinate descent for squared loss."""
    from skglm.datafits import LogisticGroup, QuadraticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupBCD, GroupProxNewton
    from skglm.utils.jit_compilation import compiled_clone

    is_logistic = task.loss == "logistic"
    X = sp.csc_matrix(task.X) if sp.issparse(task.X) else np.asfortranarray(task.X)
    n, indptr, indices = len(task.y), task.groups.indptr.astype(np.int32), task.groups.indices.astype(np.int32)
    y = np.where(task.y == 1, 1.0, -1.0) if is_logistic else task.y
    datafit = compiled_clone((LogisticGroup if is_logistic else QuadraticGroup)(indptr, indices))
    penalty = compiled_clone(WeightedGroupL2(task.lam / n, np.ones(len(task.groups)), indptr, indices))

    def fit(tol: float) -> np.ndarray:
        if sp.issparse(X):
            datafit.initialize_sparse(X.data, X.indptr, X.indices, y)
        else:
            datafit.initialize(X, y)
        if is_logistic:
            return GroupProxNewton(tol=tol, max_iter=100).solve(X, y, datafit, penalty)[0]
        return GroupBCD(tol=tol, max_iter=1000, fit_intercept=False).solve(X, y, datafit, penalty)[0]

    yield Peer("skglm", fit, TOLERANCES)


def _asgl(task: Task) -> Iterator[Peer]:
    """asgl calls CVXPY with Clarabel; losses are means, squared loss has no factor 1/2, and group sizes enter as roots.

    ``tol`` is the size below which asgl sets weights to zero. The default 1e-3 is too large for an error of 1e-6.
    """
    from asgl import Regressor

    is_logistic, size = task.loss == "logistic", len(task.groups[0])
    lam = task.lam / (len(task.y) * np.sqrt(size)) * (1.0 if is_logistic else 2.0)
    numbers = np.repeat(np.arange(len(task.groups)), np.diff(task.groups.indptr))
    model = "logit" if is_logistic else "lm"

    def fit(_: float) -> np.ndarray:
        fitted = Regressor(model=model, penalization="gl", lambda1=lam, fit_intercept=False, tol=1e-12)
        return np.ravel(fitted.fit(task.X, task.y, group_index=numbers).coef_)

    yield Peer("asgl (CVXPY)", fit, (1.0,))


SECTIONS = {"group_peers": group_peers}
