"""Newton passes for many rows: the curvature of some rows, the optimum of all."""

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr
from cvxstructreg.row_blocks import kernels
from cvxstructreg.solvers.row_blocks import sampled_newton

N, D = 4000, 60


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((N, D), density=0.2, rng=rng, format="csr")
    scores = 3.0 * (X[:, :6].sum(axis=1) - X[:, 6:12].sum(axis=1))
    return X, scores, rng


def losses():
    _, scores, rng = data()
    y = np.where(scores + rng.logistic(size=N) > 0, 1, -1)
    return {
        "logistic": csr.Logistic(y),
        "squared": csr.Squared(scores + rng.normal(size=N)),
        "huber": csr.Huber(scores + rng.standard_t(2, size=N)),
        "poisson": csr.Poisson(rng.poisson(np.exp(0.3 * scores))),
        "squared_hinge": csr.SquaredHinge(y),
    }


GROUPS = csr.Groups([np.arange(i, min(i + 4, D)) for i in range(0, D, 2)], n_features=D)


@pytest.mark.parametrize("penalty", ["l1", "groups", "both"])
@pytest.mark.parametrize("name", losses())
def test_the_curvature_of_some_rows_leads_to_the_optimum_of_all(name, penalty, monkeypatch):
    monkeypatch.setattr(sampled_newton, "MANY_ROWS", 0)
    monkeypatch.setattr(sampled_newton, "ROWS_PER_COLUMN", 20)
    steps = []
    kernel = kernels.newton_on
    monkeypatch.setattr(kernels, "newton_on", lambda *args: steps.append(args[4][1]) or kernel(*args))
    loss, (X, _, _) = losses()[name], data()
    terms = {"l1": 20.0 * csr.L1(), "groups": 15.0 * csr.GroupLasso(GROUPS)}
    objective = loss + (terms["l1"] + terms["groups"] if penalty == "both" else terms[penalty])
    memory = csr.Problem(csr.Linear(X), objective).solve()
    blocks = csr.RowBlocks([X[:1500], X[1500:]], engine="serial")
    found = csr.Problem(csr.Linear(blocks), objective).solve("gram_columns", max_passes=25)
    assert memory.status == found.status == "optimal"
    assert abs(memory.objective - found.objective) <= max(memory.certificate.gap, found.certificate.gap)
    assert max(steps) == sampled_newton.MOST_STEP  # some rows were enough


def test_a_step_that_does_not_decrease_the_objective_is_shortened_and_takes_more_rows(monkeypatch):
    monkeypatch.setattr(sampled_newton, "MANY_ROWS", 0)
    monkeypatch.setattr(sampled_newton, "ROWS_PER_COLUMN", 20)
    steps = []
    kernel = kernels.newton_on

    def wrong(X, chosen, w, b, bent, losses):
        images, slope, curved, *sums = kernel(X, chosen, w, b, bent, losses)
        steps.append(bent[1])
        if bent[1] > 1:  # the rows in the sample say that there is hardly any curvature
            curved = curved._replace(total=0.01 * curved.total, centre=0.01 * curved.centre, gram=0.01 * curved.gram)
        return images, slope, curved, *sums

    monkeypatch.setattr(kernels, "newton_on", wrong)
    X, _, _ = data()
    blocks = csr.RowBlocks([X[:1500], X[1500:]], engine="serial")
    found = csr.Problem(csr.Linear(blocks), losses()["logistic"] + 20.0 * csr.L1()).solve("gram_columns")
    assert found.status == "optimal" and steps[0] > 1 and steps[-1] == 1


def test_few_rows_are_all_taken():
    shares = sampled_newton.Shares(sampled_newton.ROWS_PER_COLUMN * 30)
    assert shares.next(20)[1] == 1 and shares.next(10)[1] == 3 and shares.next(1)[1] == sampled_newton.MOST_STEP
    assert len({shares.next(1)[0] for _ in range(sampled_newton.MOST_STEP)}) == sampled_newton.MOST_STEP
    shares.more()
    assert shares.next(1)[1] == 1
