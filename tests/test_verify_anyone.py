"""Anyone's solver is verified: functions, generators, estimators and weights in all usual shapes."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import cvxstructreg as csr
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.testing import check_atom, check_solver

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 6))
Y = X[:, 0] - 2.0 * X[:, 2] + 0.3 * RNG.normal(size=60) + 1.0
CLASSES = np.digitize(Y, [0.0, 2.0])


def lasso():
    return csr.Problem(csr.Linear(X), csr.Squared(Y) + 3.0 * csr.L1())


def ista(problem, steps=400, factor=1.0):
    """A correct proximal gradient method, which yields its iterates."""
    w, b, step = np.zeros(6), Y.mean(), 1.0 / np.linalg.norm(X, 2) ** 2
    for _ in range(steps):
        residual = X @ w + b - Y
        w = w - step * (X.T @ residual)
        w = np.sign(w) * np.maximum(np.abs(w) - factor * 3.0 * step, 0.0)
        b = np.mean(Y - X @ w)
        yield w, b


def last_of_ista(problem):
    return list(ista(problem))[-1]


def raises(problem):
    raise ZeroDivisionError("step 0 is not a step")


def gives_nan(problem):
    return np.full(6, np.nan)


def gives_nothing(problem):
    pass


class TestVerify:
    def test_functions_generators_estimators_and_weights_are_rows(self):
        peer = Lasso(alpha=3.0 / 60, tol=1e-12, max_iter=100_000).fit(X, Y)
        problem = lasso()
        report = csr.verify(
            problem,
            {
                "mine": last_of_ista,
                "iterates": ista,
                "peer": peer,
                "stored": (peer.coef_, peer.intercept_),
                "f": "fista",
            },
        )
        assert [row.solver for row in report.rows] == ["cvxpy", "mine", "iterates", "peer", "stored", "f"]
        assert report.agrees, str(report)
        assert all(row.relative_gap <= 1e-6 and row.status == "optimal" for row in report.rows)
        assert len(report.solutions["iterates"].history) > 5
        assert report.solutions["iterates"].n_iter < 400  # the tolerance was proved before the last iterate
        assert np.isnan(report.rows[3].seconds) and "peer" in str(report)
        assert report.rows[1].seconds > 0

    def test_a_list_of_functions_takes_their_names(self):
        report = csr.verify(lasso(), solvers=[last_of_ista, last_of_ista, lambda problem: np.zeros(6)])
        assert [row.solver for row in report.rows[1:]] == ["last_of_ista", "last_of_ista 2", "solver"]
        assert [row.status for row in report.rows[1:]] == ["optimal", "optimal", "inaccurate"]
        assert not report.agrees
        assert csr.verify(lasso(), last_of_ista).agrees

    def test_a_solver_that_fails_is_a_row_that_says_so(self):
        report = csr.verify(lasso(), [raises, gives_nan, gives_nothing, "fista"])
        assert [row.certificate for row in report.rows] == ["duality_gap", "none", "none", "none", "duality_gap"]
        statuses = [row.status for row in report.rows]
        assert statuses[1] == "failed: ZeroDivisionError: step 0 is not a step"
        assert "NaN" in statuses[2] and "returned None" in statuses[3]
        assert not report.agrees and len(report.disagreements) == 3
        assert "FAILED problem: raises raised ZeroDivisionError" in str(report)
        assert set(report.solutions) == {"cvxpy", "fista"}

    def test_a_generator_is_stopped_by_the_limits(self):
        def endless(problem):
            while True:
                yield np.zeros(6)

        report = csr.verify(lasso(), [endless], max_iter=20)
        assert report.rows[1].status == "max_iter" and report.rows[1].n_iter == 20

    def test_a_generator_that_breaks_is_a_failed_row(self):
        def breaks(problem):
            yield np.zeros(6)
            yield np.full(6, np.inf)

        (row,) = csr.verify(lasso(), [breaks]).rows[1:]
        assert row.status.startswith("failed: ValueError: iterate 2: ")

    def test_the_gap_of_a_wrong_solver_is_tight(self):
        report = csr.verify(lasso(), {"doubled": lambda problem: list(ista(problem, factor=2.0))[-1]})
        doubled, reference = report.solutions["doubled"], report.solutions["cvxpy"]
        assert doubled.certificate.gap == pytest.approx(doubled.objective - reference.objective, rel=1e-3)
        assert doubled.certificate.relative_gap > 1e-3

    def test_progress_names_each_solver(self):
        seen = []
        csr.verify(lasso(), ["fista", last_of_ista], progress=seen.append)
        assert seen == ["cvxpy", "fista", "last_of_ista"]

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match="there is no solver 'magic'"):
            csr.verify(lasso(), ["magic"])
        with pytest.raises(TypeError, match=r"verify needs a csr\.Problem"):
            csr.verify(X)


class TestCertify:
    def test_all_shapes_of_weights(self):
        problem = lasso()
        solution = problem.solve(tol=1e-9)
        w, b = solution.coef, solution.intercept
        gaps = [
            csr.certify(problem, w, b).gap,
            csr.certify(problem, w[None], [b]).gap,
            csr.certify(problem, w[:, None], [b]).gap,
            csr.certify(problem, (w, b)).gap,
            csr.certify(problem, solution).gap,
            csr.certify(problem, w.tolist(), b).gap,
        ]
        assert max(gaps) <= 1e-8 * solution.objective
        assert csr.certify(problem, solution, solution.intercept + 1.0).gap > 1.0

    def test_several_outputs_in_both_orientations(self):
        problem = csr.Problem(csr.Linear(X), csr.Multinomial(CLASSES) + 0.5 * csr.Ridge())
        solution = problem.solve(tol=1e-9)
        for coef in (solution.coef, solution.coef.T):
            assert csr.certify(problem, coef, solution.intercept).relative_gap <= 1e-7
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, CLASSES)
        assert csr.certify(problem, peer).relative_gap <= 1e-6
        with pytest.raises(ValueError, match=r"coef must have shape \(6, 3\), got \(5, 3\)"):
            csr.certify(problem, np.zeros((5, 3)))

    def test_estimators(self):
        label = Y > 1.0
        problem = csr.Problem(csr.Linear(X), csr.Logistic(label) + 0.5 * csr.Ridge())
        peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
        assert csr.certify(problem, peer.fit(X, label)).relative_gap <= 1e-6
        search = GridSearchCV(LogisticRegression(tol=1e-10, max_iter=10_000), {"C": [1.0]}, cv=2).fit(X, label)
        assert csr.certify(problem, search).relative_gap <= 1e-6
        ours = csr.LaplacianElasticNetClassifier(lam1=0.5).fit(X, label)
        own = csr.Problem(csr.Linear(X), csr.Logistic(label) + 0.5 * csr.L1())
        assert csr.certify(own, ours).relative_gap <= 1e-6
        with pytest.raises(TypeError, match="LogisticRegression has no coef_; call fit first"):
            csr.certify(problem, LogisticRegression())
        with pytest.raises(TypeError, match=r"Pipeline .* pass its last step, model\[-1\]"):
            csr.certify(problem, make_pipeline(StandardScaler(), peer).fit(X, label))

    def test_a_kernel_machine(self):
        label, gram = Y > 1.0, X @ X.T + 1.0
        problem = csr.Problem(csr.Kernel(gram), csr.Hinge(label) + 0.05 * csr.RKHSNorm())
        machine = SVC(kernel="precomputed", tol=1e-8, **csr.conventions.to_sklearn_svc(0.05)).fit(gram, label)
        assert csr.certify(problem, machine).relative_gap <= 1e-5
        three = SVC(kernel="precomputed").fit(gram, CLASSES)
        with pytest.raises(TypeError, match="one machine for each pair of classes"):
            csr.certify(problem, three)

    def test_cvxpy_variables_have_values(self):
        w, b = cp.Variable(6), cp.Variable()
        program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ w + b - Y) + 3.0 * cp.norm1(w)))
        with pytest.raises(ValueError, match="has no value; solve its problem first"):
            csr.certify(lasso(), w, b)
        program.solve(solver="CLARABEL")
        assert csr.certify(lasso(), w, b).relative_gap <= 1e-6
        assert csr.certify(program).relative_gap <= 1e-6
        with pytest.raises(TypeError, match=r"got Minimize.*problem = csr\.Problem\(csr\.Linear\(X\)"):
            csr.certify(program.objective, w.value)


class TestTrace:
    def test_a_sequence_has_a_history_with_tight_gaps(self):
        problem = lasso()
        optimum = problem.solve(tol=1e-10).objective
        traced = csr.trace(problem, ista(problem, 100), name="ista")
        assert traced.status == "optimal" and traced.n_iter == 100 and traced.solver == "ista"
        assert traced.history[-1].n_iter == 100 and traced.time > 0
        for record in traced.history:
            assert record.certificate.gap == pytest.approx(record.objective - optimum, rel=1e-2, abs=2e-6 * optimum)
        assert traced.certificate.dual is not None

    def test_every_and_limits(self):
        problem = lasso()
        assert [r.n_iter for r in csr.trace(problem, ista(problem, 25), every=10).history] == [10, 20, 25]
        assert csr.trace(problem, ista(problem, 25), max_iter=7, tol=1e-12).n_iter == 7
        assert csr.trace(problem, [np.zeros(6), last_of_ista(problem)]).status == "optimal"

    def test_a_nonsmooth_loss_gets_its_bound_from_a_search(self):
        problem = csr.Problem(csr.Linear(X), csr.Hinge(Y > 1.0) + 0.5 * csr.Ridge())
        best = problem.solve(tol=1e-8)
        traced = csr.trace(problem, [(0.5 * best.coef, best.intercept), (best.coef, best.intercept)])
        assert traced.status == "optimal"
        assert traced.history[0].certificate.relative_gap > traced.history[1].certificate.relative_gap

    def test_wrong_input(self):
        with pytest.raises(ValueError, match="iterates is empty"):
            csr.trace(lasso(), [])
        with pytest.raises(ValueError, match=r"iterate 2: coef must have shape \(6,\)"):
            csr.trace(lasso(), [np.zeros(6), np.zeros(5)])
        with pytest.raises(ValueError, match="every must be at least 1"):
            csr.trace(lasso(), [np.zeros(6)], every=0)


class TestContract:
    def test_functions_are_checked(self):
        check_solver(last_of_ista, lasso())
        check_solver(ista, lasso())
        hinge = csr.Problem(csr.Linear(X), csr.Hinge(Y > 1.0) + 0.5 * csr.Ridge())
        solution = hinge.solve(tol=1e-8)
        check_solver(lambda problem: (solution.coef, solution.intercept), hinge)

    def test_a_failure_names_the_property_the_point_and_the_two_numbers(self):
        with pytest.raises(AssertionError, match=r"solver 'raises' .*: runs: failed: ZeroDivisionError"):
            check_solver(raises, lasso())
        with pytest.raises(
            AssertionError, match=r"status: expected 'optimal', got 'inaccurate': relative gap 0\.\d+, toler"
        ):
            check_solver(lambda problem: np.zeros(6), lasso())
        with pytest.raises(AssertionError, match=r"got 'max_iter'.*\(at coef = \[.*\], intercept = "):
            check_solver("fista", lasso(), max_iter=1)
        with pytest.raises(AssertionError, match="got 'time_limit'"):
            check_solver("fista", lasso(), time_limit=1e-9)
        with pytest.raises(AssertionError, match="got 'max_iter'"):
            check_solver(ista, lasso(), max_iter=2)

    def test_atoms_have_a_time_limit(self):
        with pytest.raises(AssertionError, match=r"L1\(\): expr: the time limit passed before this was checked"):
            check_atom(csr.L1(), (3, 1), time_limit=1e-9)
        check_atom(csr.L1(), (3, 1), time_limit=60.0)


@pytest.mark.parametrize("loss", ["hinge", "multiclass"])
def test_losses_with_kinks_are_certified_without_a_long_search_at_a_guess(loss, monkeypatch):
    rng, steps, prox = np.random.default_rng(0), [], BlockNorms.prox
    X = rng.normal(size=(100, 12))
    y = X[:, 0] + rng.normal(size=100)
    fit = csr.Hinge(np.sign(y)) if loss == "hinge" else csr.MulticlassHinge(np.digitize(y, [-0.5, 0.5]))
    groups = csr.Groups([range(i, i + 4) for i in range(0, 9, 2)], n_features=12)
    problem = csr.Problem(csr.Linear(X), fit + 3.0 * csr.GroupLasso(groups))
    solution = problem.solve()
    monkeypatch.setattr(BlockNorms, "prox", lambda self, v, t: (steps.append(t), prox(self, v, t))[1])
    certificate = csr.certify(problem, solution.coef, solution.intercept)
    assert certificate.relative_gap <= 1e-6 and len(steps) <= 100
