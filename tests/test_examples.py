"""Every example runs from the command line and prints something."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array as csr_matrix

import cvxstructreg as csr
from cvxstructreg.solvers.groups import sentence_admm
from cvxstructreg.solvers.iterate import Iterate

ROOT = Path(__file__).parent.parent


#: Run as commands of their own, one of each folder; the others run as main programs of this process, which is faster.
AS_COMMANDS = ("two_overlap_norms.py", "sandler_2008.py")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a script as a main program, with warnings as errors, and return what it prints."""

    def run(script, *arguments):
        if script.name in AS_COMMANDS:
            command = [sys.executable, "-W", "error", script, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            return done.stdout
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", [str(script), *map(str, arguments)])
            patch.syspath_prepend(script.parent)
            runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_scripts_are_run_as_commands():
    assert {path.name for path in (ROOT / "examples").rglob("*.py")} >= set(AS_COMMANDS)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(script, run):
    assert "gap" in run(script)


PAPERS = sorted([*(ROOT / "examples" / "papers").glob("*_20*.py"), ROOT / "examples" / "papers" / "truncation.py"])


@pytest.mark.parametrize("script", PAPERS, ids=lambda path: path.name)
def test_paper_on_made_data(script, run, tmp_path, monkeypatch):
    for folder in ("CVXSTRUCTREG_DATA", "XDG_CACHE_HOME", "SCIKIT_LEARN_DATA"):
        monkeypatch.setenv(folder, str(tmp_path))
    run(script, "--quick", "--json", tmp_path / "r.json", "--figure", tmp_path / "r.png")
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["tables"] and content["protocol"] and content["seconds"] > 0
    assert (tmp_path / "r.png").stat().st_size > 1000


@pytest.fixture
def published_admm(monkeypatch):
    """The module of the paper scripts, with w-steps to the end."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "papers")
    import published_admm
    import weight_step

    for name, value in {"W_CHANGE": 1e-9, "RESIDUAL": 1e-6, "ACCURACY": 1e-12, "NEWTON_STEPS": 60}.items():
        monkeypatch.setattr(weight_step, name, value)
    for name, value in {"W_CHANGE": 1e-9, "OF_FIRST": 1e-6, "OF_LAM": 1e-8, "NEWTON_STEPS": 50, "PASSES": 500}.items():
        monkeypatch.setattr(published_admm, name, value)
    return published_admm


def small_text(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, size=(40, 15)).astype(float)
    y = (X[:, 0] + X[:, 1] - X[:, 2] + 0.5 * rng.standard_normal(40) > 0.5).astype(int)
    sentences = [sorted(rng.choice(15, size, replace=False).tolist()) for size in rng.integers(1, 6, size=25)]
    return X, y, [*sentences, *sentences[:5], sentences[0]]


def test_the_fast_iteration_is_the_published_one(published_admm):
    X, y, sentences = small_text()
    groups = csr.Groups(sentences, n_features=15)
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.3 * csr.GroupLasso(groups) + 0.2 * csr.L1())
    start = Iterate(np.zeros((15, 1)), np.zeros(1))
    library = sentence_admm.run(problem, start, 1e-6, rho=0.7, w_tol=1e-10)
    here = published_admm.iterations(csr_matrix(X), y, groups, 0.3, 0.2, 0.7)
    for _, theirs, ((w, b), multipliers, _) in zip(range(8), library, here, strict=False):
        np.testing.assert_allclose(w, theirs.theta[:, 0], atol=1e-5)
        assert b == pytest.approx(theirs.b[0], abs=1e-5)
        np.testing.assert_allclose(multipliers, theirs.dual[1][:, 0], atol=1e-4)
    assert 0 < np.count_nonzero(w) < 15


def test_a_repeated_word_has_as_many_copies(published_admm):
    X, y, _ = small_text()
    tokens = [[1, 2, 1], [3, 1], [1, 1, 1, 2], [4]]
    members = [[0, 1, 2], [2, 3], [0, 4, 5, 6], [7]]
    groups = csr.Groups(members, n_features=15, member_weights=[np.sqrt(row) for row in tokens])
    problem = csr.Problem(csr.Linear(X), csr.Logistic(y) + 0.3 * csr.GroupLasso(groups) + 0.2 * csr.L1())
    library = sentence_admm.run(problem, Iterate(np.zeros((15, 1)), np.zeros(1)), 1e-6, rho=0.7, w_tol=1e-10)
    here = published_admm.iterations(csr_matrix(X), y, groups, 0.3, 0.2, 0.7)
    for _, theirs, ((w, _), multipliers, _) in zip(range(8), library, here, strict=False):
        np.testing.assert_allclose(w, theirs.theta[:, 0], atol=1e-5)
        np.testing.assert_allclose(multipliers, theirs.dual[1][:, 0], atol=1e-4)
    counts = published_admm.Trunk(csr_matrix(X), y, groups, 0.2, 0.7).counts
    np.testing.assert_allclose(counts[:8], [2, 2, 4, 1, 1, 1, 2, 4])


def test_equal_sentences_count_as_many(published_admm):
    X, y, sentences = small_text(1)
    every = csr.Groups(sentences, n_features=15)
    once = every.merged()
    assert once.weights.max() == 3 and len(once) < len(every)
    runs = (
        published_admm.iterations(csr_matrix(X), y, every, 0.3, 0.2, 0.7),
        published_admm.iterations(csr_matrix(X), y, once, 0.3, 0.2, 0.7, weights_are_counts=True),
    )
    for _, (one, each, _), (other, together, _) in zip(range(6), *runs, strict=False):
        np.testing.assert_allclose(one[0], other[0], atol=1e-6)
        pulls = np.bincount(every.indices, each, minlength=15), np.bincount(once.indices, together, minlength=15)
        np.testing.assert_allclose(*pulls, atol=1e-5)


def test_runs_are_continued(published_admm):
    X, y, sentences = small_text(2)
    given = (csr_matrix(X), y, csr.Groups(sentences, n_features=15), 0.3, 0.2, 0.7)
    run, whole = published_admm.Stops(*given), published_admm.Stops(*given)
    run.after(1)
    np.testing.assert_array_equal(run.after(4)[0][0], whole.after(4)[0][0])
    trunk = published_admm.Trunk(*given[:3], *given[4:])
    for lam in (50.0, 5.0, 1.0):  # runs share the iterations without a nonzero copy, which know no lam
        other = published_admm.Stops(*given[:3], lam, *given[4:], trunk=trunk)
        plain = published_admm.Stops(*given[:3], lam, *given[4:])
        for count in (1, 3, 6):
            for mine, theirs in zip(other.after(count)[0], plain.after(count)[0], strict=True):
                np.testing.assert_allclose(mine, theirs, atol=1e-6)
            np.testing.assert_allclose(other.after(count)[1], plain.after(count)[1], atol=1e-5)
    assert 1 < len(trunk.points) < 7
    long = published_admm.Stops(*given)
    long.after(5000)
    assert long.ended and not run.ended


def test_the_readme_examples_run(capsys):
    """From a prototype to a proof in 25 lines, and a file larger than memory in five."""
    blocks = [block.split("```")[0] for block in (ROOT / "README.md").read_text().split("```python\n")[1:]]
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith("#")]
        assert len(lines) <= 25
        exec(compile(block, "README.md", "exec"), names)
    out = capsys.readouterr().out
    assert "duality_gap" in out
    assert "NOT CERTIFIED problem: mine" in out
    assert "Largest violations" in out
    assert out.count("optimal") >= 3
