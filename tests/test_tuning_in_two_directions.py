"""Cross-validation over ratios and strengths: by hand, choices at the edge, several processes, generic penalties."""

import multiprocessing
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from estimator_cases import GRAPH, GROUPS
from joblib.externals.loky import get_reusable_executor
from sklearn.model_selection import KFold

import cvxstructreg as csr
from cvxstructreg.estimators import folds
from cvxstructreg.estimators.linear import TrainingData
from cvxstructreg.runtime import processes

CASES = {
    "FeatureNetworkClassifier": ({"graph": GRAPH}, ("alpha", "beta")),
    "GroupLassoClassifier": ({"groups": GROUPS}, ("lam_l1", "lam_group")),
    "GroupLassoRegressor": ({"groups": GROUPS}, ("lam_l1", "lam_group")),
    "LaplacianElasticNetClassifier": ({"graph": GRAPH}, ("lam2", "lam1")),
    "LaplacianElasticNetRegressor": ({"graph": GRAPH}, ("lam2", "lam1")),
}
quiet = pytest.mark.filterwarnings("ignore::cvxstructreg.GridEdgeWarning")


def data(regression, n=40):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 5))
    z = X[:, 0] + X[:, 1] + rng.normal(size=n)
    return X, z if regression else (z > 0).astype(int)


@quiet
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_ratio_has_its_path(name):
    params, (first, second) = CASES[name]
    X, y = data(name.endswith("Regressor"))
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    ratios = [0.5, 0.0, 4.0]
    model = getattr(csr, f"{name}CV")(**params, ratios=ratios, n_strengths=4, cv=splits).fit(X, y)
    assert model.ratios_.tolist() == [0.0, 0.5, 4.0]
    assert model.ratio_scores_.shape == (3, 3, 4) and model.ratio_strengths_.shape == (3, 4)
    for number, ratio in enumerate(model.ratios_):
        fixed = getattr(csr, f"{name}CV")(**params, ratios=[ratio], n_strengths=4, cv=splits).fit(X, y)
        np.testing.assert_allclose(fixed.strengths_, model.ratio_strengths_[number], rtol=1e-9)
        np.testing.assert_allclose(fixed.scores_, model.ratio_scores_[number], atol=1e-9)
        strength = fixed.strengths_[2]
        plain = getattr(csr, name)(**params, **{first: ratio * strength, second: strength})
        train, test = splits[1]
        expected = plain.fit(X[train], y[train]).score(X[test], y[test])
        assert model.ratio_scores_[number, 1, 2] == pytest.approx(expected, abs=1e-3)
    best = model.ratio_scores_.mean(axis=1).max()
    assert model.mean_score_[model.best_index_] == pytest.approx(best)
    assert model.best_params_[first] == pytest.approx(model.best_ratio_ * model.best_params_[second])
    again = getattr(csr, name)(**params, **model.best_params_).fit(X, y)
    assert abs(again.objective_ - model.objective_) <= again.certificate_.gap + model.certificate_.gap + 1e-12


@quiet
def test_processes_agree_and_none_is_started_for_short_paths(monkeypatch):
    X, y = data(False)
    arguments = {"groups": GROUPS, "ratios": [0.1, 1.0], "n_strengths": 3, "cv": 3}
    serial = csr.GroupLassoClassifierCV(**arguments).fit(X, y)
    get_reusable_executor().shutdown(wait=True)
    before = children()
    short = csr.GroupLassoClassifierCV(**arguments, n_jobs=2).fit(X, y)
    assert children() == before
    monkeypatch.setattr(processes, "worth_processes", lambda *work: True)
    parallel = csr.GroupLassoClassifierCV(**arguments, n_jobs=2).fit(X, y)
    assert len(children() - before) >= 2
    for model in (short, parallel):
        np.testing.assert_allclose(model.ratio_scores_, serial.ratio_scores_, rtol=1e-9)


def children():
    """The processes that this one has started."""
    return {process.pid for process in multiprocessing.active_children()}


@quiet
@pytest.mark.parametrize(
    ("clock", "seconds", "idle", "jobs"),
    [
        *[(4.5, 4.5, 4.5, 1), (4.9, 4.9, 4.9, 2), (4.5, 4.5, np.inf, 1), (4.9, 4.9, np.inf, 2)],
        *[(50.0, 50.0, 0.0, 1), (12.0, 6.0, 0.0, 1), (16.0, 8.0, 0.0, 2)],
    ],
)
def test_the_first_task_tells_whether_processes_start(clock, seconds, idle, jobs, monkeypatch):
    """Of five tasks, two processes do three: 3.5 + 3 t < 0.75 * 5 t if t > 4.7 s.

    If no processor is idle, two processes get a larger share than one: 4 / 3 times if nothing waits, 8 / 5 times if
    half of the time is waiting (4.4 + 3.1 t < 3.75 t if t > 7).
    """
    monkeypatch.setattr(processes.os, "cpu_count", lambda: 2)
    moments = iter([processes.Moment(0.0, 0.0, 0.0, 0.0), processes.Moment(clock, seconds, 0.0, idle)])
    started = []
    original = folds.Parallel
    monkeypatch.setattr(folds, "Parallel", lambda n_jobs, **how: started.append(n_jobs) or original(1, **how))
    monkeypatch.setattr(folds, "effective_n_jobs", lambda n_jobs: n_jobs)
    monkeypatch.setattr(processes.Moment, "now", classmethod(lambda cls: next(moments)))
    monkeypatch.setattr(processes, "_pool", {})
    X, y = data(False)
    csr.GroupLassoClassifierCV(GROUPS, ratios=[0.1, 1.0], n_strengths=3, cv=3, n_jobs=2).fit(X, y)
    assert started == [jobs]
    assert processes.start_of(2) == (processes.RUNNING if jobs == 2 else processes.START)


def test_the_work_of_a_task_is_told_without_compilation_and_waiting(monkeypatch):
    monkeypatch.setattr(processes.os, "cpu_count", lambda: 2)
    start = processes.Moment(0.0, 0.0, 0.0, 0.0)
    for end, expected, speed in [
        ((2.0, 2.0, 0.5, 2.0), (1.5, 1.5, 1.0, 1.0), 2.0),
        ((4.0, 2.0, 0.0, 0.0), (2.0, 2.0, 0.5, 0.0), 8 / 5),  # it waited
        ((2.0, 4.0, 0.0, 0.0), (2.0, 4.0, 2.0, 0.0), 2.0),  # two threads
    ]:
        monkeypatch.setattr(processes.Moment, "now", classmethod(lambda cls, end=end: cls(*end)))
        work = processes.Work.since(start)
        assert work == pytest.approx(expected)
        assert work.speed(2) == pytest.approx(speed)
    assert not processes.worth_processes(processes.Work(50.0, 100.0), 14, jobs=2)  # two threads did the first task


def test_choices_at_the_edge_warn():
    X, y = data(True)
    with pytest.warns(csr.GridEdgeWarning, match="weakest strength"):
        csr.GroupLassoRegressorCV(GROUPS, strengths=[30.0, 20.0, 10.0], cv=3).fit(X, y)
    rng = np.random.default_rng(0)
    with pytest.warns(csr.GridEdgeWarning, match="may not help"):
        csr.GroupLassoRegressorCV(GROUPS, n_strengths=5, cv=3).fit(X, rng.normal(size=40))
    with pytest.warns(csr.GridEdgeWarning, match="give stronger strengths"):
        csr.GroupLassoRegressorCV(GROUPS, strengths=[0.01, 0.02, 0.03], cv=3).fit(X, rng.normal(size=40))
    equal = csr.Graph.from_edges([(0, 1)], n_nodes=5)
    noisy = X[:, 0] + X[:, 1] + 5.0 * rng.normal(size=40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = csr.LaplacianElasticNetRegressorCV(equal, ratios=[1e-3, 2e-3, 3e-3], n_strengths=5).fit(X, noisy)
    told = [str(warning.message) for warning in caught if issubclass(warning.category, csr.GridEdgeWarning)]
    assert any("ratio" in text for text in told) == (model.best_ratio_ != 2e-3)


@quiet
def test_generic_penalties_and_losses():
    X, _ = data(True, 60)
    rng = np.random.default_rng(7)
    times = rng.uniform(0.5, 2.0, size=60)
    y = rng.poisson(times * np.exp(X[:, 0]))
    penalty = csr.L1() + 0.5 * csr.Ridge()
    model = csr.StructuredRegressorCV(penalty, loss="poisson", n_strengths=5, cv=3, ratios=[0.1, 1.0])
    model.fit(X, y, exposure=times)
    train, test = next(KFold(3).split(X))
    strength, ratio = model.ratio_strengths_[1, 2], model.ratios_[1]
    plain = csr.StructuredRegressor(strength * (csr.L1() + ratio * 0.5 * csr.Ridge()), loss="poisson")
    plain.fit(X[train], y[train], exposure=times[train])
    expected = plain.score(X[test], y[test], exposure=times[test])
    assert model.ratio_scores_[1, 0, 2] == pytest.approx(expected, abs=1e-4)
    again = csr.StructuredRegressor(loss="poisson", **model.best_params_).fit(X, y, exposure=times)
    assert abs(again.objective_ - model.objective_) <= again.certificate_.gap + model.certificate_.gap + 1e-12
    with pytest.raises(ValueError, match="does not know the exposure"):
        csr.StructuredRegressorCV(penalty, loss="poisson", scoring="r2").fit(X, y, exposure=times)


@quiet
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_losses_with_kinks_have_paths_too(loss):
    X, y = data(False)
    model = csr.StructuredClassifierCV(csr.L1(), loss=loss, n_strengths=4, cv=3).fit(X, y)
    assert model.path_.n_selected[0] == 0
    assert model.mean_score_.max() > 0.6
    X, y = data(True)
    median = csr.StructuredRegressorCV(csr.GroupLasso(list(GROUPS.values())), loss="absolute", n_strengths=4, cv=3)
    assert median.fit(X, y).path_.n_selected[0] == 0 and median.path_.gaps.max() <= 1e-6


def test_survival_in_folds():
    X, z = data(True, 60)
    rng = np.random.default_rng(8)
    time = rng.exponential(np.exp(-z))
    y = np.array([(t < 3.0, min(t, 3.0)) for t in time], dtype=[("event", bool), ("time", float)])
    model = csr.StructuredRegressorCV(csr.L1(), loss="cox", n_strengths=8, cv=3, rule="one_standard_error").fit(X, y)
    assert model.mean_score_.max() > 0.6
    assert 0 < len(model.selected_features()) <= 5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ratios": []}, "nonempty"),
        ({"ratios": [-1.0]}, "at least 0"),
        ({"ratios": [1.0], "lam_group": 0.0, "lam_l1": 1.0}, "lam_l1 / lam_group"),
    ],
)
def test_bad_ratios(params, message):
    with pytest.raises(ValueError, match=message):
        csr.GroupLassoClassifierCV(GROUPS, **params).fit(*data(False))


def maps(task):
    """Whether the arrays of X are mapped from disk, in the process that runs the task."""
    X = task.data.X
    return [isinstance(part, np.memmap) for part in ([X.data, X.indices] if sp.issparse(X) else [X])]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_processes_share_large_data_from_disk(form):
    """All folds and ratios have the same X: joblib writes it once, and no process holds a copy of its own."""
    X = form(np.random.default_rng(0).normal(size=(3000, 100)))
    data = TrainingData(X, np.zeros(3000), np.ones(3000), [])
    tasks = [folds.Task(None, data, (np.arange(2000), np.arange(2000, 3000)), np.ones(2)) for _ in range(4)]
    found = joblib.Parallel(n_jobs=2)(joblib.delayed(maps)(task) for task in tasks)
    assert found == [[True] * len(found[0])] * 4


@pytest.mark.parametrize("penalty", [csr.L1(), None, csr.L1() + csr.NonNegative()])
def test_ratios_of_a_penalty_of_one_term_are_refused(penalty):
    with pytest.raises(ValueError, match="only one that can be multiplied; leave out ratios"):
        csr.StructuredRegressorCV(penalty, ratios=[0.0, 1.0]).fit(*data(True))
