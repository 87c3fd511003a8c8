"""Cox's partial likelihood in plain CVXPY, with one sum for each row instead of one for each risk set.

With rows in the order of time, and events before other rows of the same time, the sums over risk sets obey
R_i = log(exp(R_(i+1)) + exp(f_i)). The constraints R_i >= ... have two exponentials each, where the definition has as
many as there are rows at risk. Efron's terms add shares of the events at one time, whose sums obey the same rule.
"""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np


def chained(X: np.ndarray, loss: Any, lam: float, groups: list[range]) -> cp.Problem:
    """Cox's loss plus lam times the norms of the groups."""
    order = np.lexsort((~loss.event, loss.y[:, 0]))
    times, events = loss.y[order, 0], loss.event[order]
    w, n = cp.Variable(X.shape[1]), len(times)
    x, R = X[order] @ w, cp.Variable(n)
    total, rules = _terms(x, R, times, events, loss.ties == "efron")
    norms = cp.sum(cp.hstack([cp.norm(w[np.array(g)]) for g in groups]))
    rules += [_log_sum(R[1:], x[:-1]) <= R[:-1], R[-1] == x[-1]]
    return cp.Problem(cp.Minimize(total - events.astype(float) @ x + lam * norms), rules)


def _terms(x: Any, R: Any, times: np.ndarray, events: np.ndarray, efron: bool) -> tuple[Any, list[Any]]:
    """The sum of log(S - f D) over all events, and the rules of the sums D over events at one time."""
    first = np.searchsorted(times, times)  # the first row of the same time, which is an event if there is any
    at = np.flatnonzero(events)
    if not efron:
        return cp.sum(R[first[at]]), []
    counts = np.array([np.count_nonzero(events[times == t]) for t in times[at]])
    part = (at - first[at]) / counts
    D = cp.Variable(len(times))
    inside = [i for i in at if i + 1 < len(times) and events[i + 1] and times[i + 1] == times[i]]
    last = np.setdiff1d(at, inside)
    rules = [D[last] == x[last], _log_sum(D[np.array(inside) + 1], x[inside]) <= D[inside]]
    whole, shared = at[part == 0], at[part > 0]
    behind = first[shared] + counts[part > 0]  # the first row after the events of this time
    ahead, alone = behind < len(times), behind >= len(times)
    shares, own = np.log1p(-part[part > 0]), first[shared]
    total = cp.sum(R[first[whole]])
    total += cp.sum(_log_sum(R[behind[ahead]], D[own[ahead]] + shares[ahead]))
    return (total + cp.sum(D[own[alone]] + shares[alone]) if alone.any() else total), rules


def _log_sum(a: Any, b: Any) -> Any:
    return cp.log_sum_exp(cp.vstack([a, b]), axis=0)
