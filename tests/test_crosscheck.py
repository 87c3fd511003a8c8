"""The cross-check finds no violation in the package, and finds each of several planted errors."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg import cli
from cvxstructreg.crosscheck import Settings, Violation, as_script, check, random_recipe, shrink
from cvxstructreg.crosscheck import run as runs
from cvxstructreg.crosscheck.build import build
from cvxstructreg.crosscheck.command import main
from cvxstructreg.crosscheck.patience import TooSlow, is_slow, patience
from cvxstructreg.crosscheck.report import as_html, tally
from cvxstructreg.forms.separable import Separable
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.runtime import compiling
from cvxstructreg.solvers import registry

#: Small problems, few iterations and rare extras: what every run of the tests can afford.
LIGHT = Settings(
    time_limit=0.08,
    other_limit=0.05,
    grace=10.0,  # machines differ, and one certificate may take longer than such a limit
    max_iter=30,
    n_points=1,
    certify=0.3,
    search=0.0,
    repeat=0.05,
    threads=0.02,
)
FIXED, FRESH, CHUNK, LARGEST = 300, 50, 25, 7


def violations(seed: int, numbers: range) -> list[str]:
    found = []
    for number in numbers:
        recipe = random_recipe(seed, number, LARGEST)
        for violation in check(recipe, LIGHT).violations:
            smaller, same = shrink(recipe, violation, LIGHT, seconds=5.0)
            found.append(f"problem {seed}-{number}:\n{as_script(smaller, same, LIGHT)}")
    return found


@pytest.mark.parametrize("start", range(0, FIXED, CHUNK))
def test_fixed_problems_have_no_violation(start):
    found = violations(20, range(start, start + CHUNK))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("start", range(0, FRESH, CHUNK))
def test_fresh_problems_have_no_violation(start):
    seed = time.time_ns() % 10**9
    found = violations(seed, range(start, start + CHUNK))
    assert not found, f"seed {seed}\n" + "\n\n".join(found)


# ---------------------------------------------------------------------------------------------------- planted errors


def first_found(kinds: set[str], wanted, most: int = 60, settings: Settings = LIGHT) -> Violation:
    """The first violation of these kinds among the problems of the wanted sort."""
    tried = 0
    for number in range(4000):
        recipe = random_recipe(7, number, LARGEST)
        if not wanted(recipe):
            continue
        tried += 1
        for violation in check(recipe, settings).violations:
            if violation.kind in kinds:
                return violation
        if tried == most:
            break
    raise AssertionError(f"{most} problems, and nothing was found")


def with_term(*kinds: str):
    return lambda recipe: any(term["kind"] in kinds and term["scale"] > 0 for term in recipe["terms"])


def test_a_value_that_is_off_by_a_factor_is_found(monkeypatch):
    right = csr.Hinge.value
    monkeypatch.setattr(csr.Hinge, "value", lambda self, z: 1.0001 * right(self, z))
    assert first_found({"objective"}, with_term("Hinge"))


def test_a_conjugate_that_is_off_by_a_factor_is_found(monkeypatch):
    right = csr.Squared.conj
    monkeypatch.setattr(csr.Squared, "conj", lambda self, u: 0.99 * right(self, u))
    assert first_found({"atom", "bound"}, with_term("Squared"))


def test_a_conjugate_of_counts_with_a_wrong_offset_is_found(monkeypatch):
    right = csr.Poisson.conj
    monkeypatch.setattr(csr.Poisson, "conj", lambda self, u: right(self, u) - 0.01 * abs(u).sum())
    assert first_found({"atom", "bound"}, with_term("Poisson"))


def test_quantiles_on_the_wrong_side_are_found(monkeypatch):
    right = csr.Quantile.value
    monkeypatch.setattr(csr.Quantile, "value", lambda self, z: right(self, 2.0 * self.y - z))
    assert first_found({"objective"}, with_term("Quantile"))


def test_a_dual_norm_that_is_halved_is_found(monkeypatch):
    right = BlockNorms.dual_norm
    monkeypatch.setattr(BlockNorms, "dual_norm", lambda self, u: 0.5 * right(self, u))
    assert first_found({"atom", "bound", "status"}, with_term("GroupLasso"))


def test_a_prox_with_a_wrong_threshold_is_found(monkeypatch):
    right = Separable.prox
    monkeypatch.setattr(Separable, "prox", lambda self, v, t: right(self, v, 1.2 * t))
    assert first_found({"atom"}, with_term("L1"))


def test_a_gradient_with_a_wrong_sign_is_found(monkeypatch):
    right = csr.Logistic.grad
    monkeypatch.setattr(csr.Logistic, "grad", lambda self, z: -right(self, z))
    assert first_found({"atom"}, with_term("Logistic"))


def with_solutions(monkeypatch, change):
    """Every solution is changed on its way to the user."""
    right = csr.Problem.solve
    monkeypatch.setattr(csr.Problem, "solve", lambda self, *given, **more: change(right(self, *given, **more)))


def test_a_certificate_that_proves_a_little_too_much_is_found(monkeypatch):
    def optimistic(solution):
        proof = solution.certificate
        bound = min(proof.lower_bound + 1e-4 * abs(proof.objective), proof.objective)
        changed = dataclasses.replace(proof, lower_bound=bound, gap=proof.objective - bound)
        return dataclasses.replace(solution, certificate=changed)

    with_solutions(monkeypatch, optimistic)
    assert first_found({"bound"}, with_term("Squared", "SquaredHinge"))


def test_a_status_that_does_not_match_the_gap_is_found(monkeypatch):
    with_solutions(monkeypatch, lambda solution: dataclasses.replace(solution, status="optimal"))
    assert first_found({"status"}, lambda recipe: True, most=200)


def test_a_minimiser_that_is_denied_is_found(monkeypatch):
    with_solutions(monkeypatch, lambda solution: dataclasses.replace(solution, status="no_minimiser"))
    assert first_found({"status"}, with_term("Logistic"))


def test_a_relative_gap_that_is_too_small_is_found(monkeypatch):
    def flattered(solution):
        proof = dataclasses.replace(solution.certificate, relative_gap=0.5 * solution.certificate.relative_gap)
        return dataclasses.replace(solution, certificate=proof)

    with_solutions(monkeypatch, flattered)
    assert first_found({"status"}, lambda recipe: True)


def test_a_solver_that_vouches_for_a_wrong_point_is_found(monkeypatch):
    with_solutions(monkeypatch, lambda solution: dataclasses.replace(solution, coef=1.01 * solution.coef))
    assert first_found({"objective"}, with_term("Squared"))


def test_an_error_that_is_no_refusal_is_found(monkeypatch):
    def broken(problem, start, tol):
        raise IndexError("list index out of range")
        yield

    monkeypatch.setattr(registry.solvers()[-1], "run", broken)
    assert first_found({"exception"}, lambda recipe: True).where == "cvxpy"


def test_a_warning_of_numpy_is_found(monkeypatch):
    right = csr.Squared.value
    monkeypatch.setattr(csr.Squared, "value", lambda self, z: right(self, z) + 0.0 * float(np.log(np.zeros(1))[0] > 0))
    assert first_found({"warning"}, with_term("Squared"))


def test_results_that_are_not_repeated_are_found(monkeypatch):
    rng = np.random.default_rng(0)

    def shaken(solution):
        return dataclasses.replace(solution, coef=solution.coef * (1.0 + 1e-15 * rng.integers(1, 5)))

    with_solutions(monkeypatch, shaken)
    assert first_found({"repetition"}, with_term("Squared"), settings=dataclasses.replace(LIGHT, repeat=1.0))


def test_a_limit_that_is_not_kept_is_found(monkeypatch):
    right = registry.solvers()[-1].run

    def slow(problem, start, tol, **options):
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        yield from right(problem, start, tol, **options)

    monkeypatch.setattr(registry.solvers()[-1], "run", slow)
    settings = dataclasses.replace(LIGHT, other_limit=0.01, grace=0.1, solvers=("cvxpy",), textbook=False, atoms=False)
    found = check(random_recipe(7, 0, LARGEST), settings).violations
    assert [violation.kind for violation in found] == ["time"]


def test_runs_that_compile_loops_are_not_timed():
    left = [3]

    def compiles():
        end = time.process_time() + 0.33
        if left[0]:
            left[0] -= 1
            compiling.begin()
            while time.process_time() < end:
                pass
            compiling.end()

    assert not is_slow(compiles, 0.3)  # it would be stopped after 0.45 seconds
    assert left == [0]

    def hangs():
        while True:
            pass

    assert is_slow(hangs, 0.05)


# ------------------------------------------------------------------------------------- shrinking, scripts and the run


def test_a_violation_is_shrunk_to_a_script_of_ten_lines_that_shows_it(monkeypatch, tmp_path):
    right = csr.Hinge.value
    monkeypatch.setattr(csr.Hinge, "value", lambda self, z: 1.0001 * right(self, z))
    recipes = (random_recipe(7, number, 30) for number in range(400))
    linear = (recipe for recipe in recipes if with_term("Hinge")(recipe) and recipe["model"]["kind"] == "linear")
    pairs = ((recipe, violation) for recipe in linear for violation in check(recipe, LIGHT).violations)
    recipe, violation = next(pair for pair in pairs if pair[1].kind == "objective")
    smaller, same = shrink(recipe, violation, LIGHT, seconds=10.0)
    assert same.kind == "objective" and len(smaller["model"]["matrix"]) <= 3 and len(smaller["terms"]) <= 2
    script = as_script(smaller, same, LIGHT)
    assert len(script.splitlines()) <= 12
    path = tmp_path / "shown.py"
    path.write_text(script)
    shown = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert "duality_gap" in shown.stdout or "kkt" in shown.stdout


@pytest.mark.parametrize("number", range(0, 40, 2))
def test_every_recipe_can_be_printed_as_a_script(number):
    recipe = random_recipe(11, number, 6)
    lines = as_script(recipe, Violation("status", "build", "none")).splitlines()
    names: dict[str, object] = {}
    try:
        problem = build(recipe)
        n_weights = problem.model.n_weights
    except ValueError:
        return  # refused
    exec("\n".join(lines), names)
    rng = np.random.default_rng(number)
    theta = rng.normal(size=(n_weights, problem.n_outputs))
    theta = theta[:, 0] if problem.n_outputs == 1 else theta
    assert names["problem"].value(theta) == problem.value(theta)


def test_a_run_is_resumed_where_it_ended(tmp_path):
    path, plan = tmp_path / "out.jsonl", runs.Plan(3, seed=5, largest=4, settings=LIGHT)
    first = runs.run(plan, path, jobs=1)
    assert sorted(first) == [0, 1, 2]
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:3], lines[3][:20]]))  # the last record was cut off
    again = runs.run(plan, path, jobs=1)
    assert sorted(again) == [0, 1, 2] and again[0] == json.loads(lines[1])
    with pytest.raises(ValueError, match="other settings"):
        runs.run(runs.Plan(3, seed=6, largest=4, settings=LIGHT), path, jobs=1)


def _dying(plan, pipe):
    pipe.recv()
    raise SystemExit(3)


def test_a_process_that_dies_is_a_violation(monkeypatch):
    monkeypatch.setattr(runs, "_work", _dying)
    (record,) = runs._results(runs.Plan(1, seed=5, largest=4), [0], jobs=1)
    assert record["violations"][0]["kind"] == "crash"


def test_the_command_writes_a_report_and_its_exit_code_says_what_was_found(tmp_path, capsys, monkeypatch):
    report = tmp_path / "out.html"
    monkeypatch.setattr(runs, "_results", lambda plan, numbers, jobs: [runs.examine(plan, n) for n in numbers])
    assert main(["--problems", "2", "--seed", "5", "--largest", "4", "--report", str(report)]) == 0
    assert "no violation" in report.read_text() and "2 problems; 0 violations" in capsys.readouterr().out
    monkeypatch.setattr(csr.core.problem.Problem, "value_at", lambda self, *more: 1e9)
    arguments = ["--problems", "1", "--seed", "5", "--largest", "4", "--report", str(report), "--fresh"]
    assert cli.main(["crosscheck", *arguments, "--shrink", "0"]) == 1
    assert "VIOLATION" in capsys.readouterr().out


def test_the_table_counts_each_problem_once():
    bad = {"kind": "bound", "where": "admm", "message": "<b>", "script": "x < 1"}
    records = {
        0: {"class": ["Hinge", "linear", ["L1", "Ridge"]], "status": "optimal", "violations": [], "seconds": 0.1},
        1: {"class": ["Hinge", "linear", []], "status": "time_limit", "violations": [], "seconds": 0.1},
        2: {"class": ["Hinge", "kernel", []], "status": "optimal", "violations": [bad], "seconds": 99.0},
    }
    table = tally(records)
    assert table["all problems"] == {"tried": 3, "optimal": 1, "honest non-optimal": 1, "violations": 1}
    assert table["Hinge, linear"]["tried"] == 2 and table["with no penalty"]["tried"] == 2
    assert "&lt;b&gt;" in as_html(records, "title")


def test_work_that_does_not_end_is_stopped():
    with pytest.raises(TooSlow), patience(0.1):
        while True:
            pass


def test_the_folder_of_a_report_is_made_or_refused_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runs, "_results", lambda plan, numbers, jobs: [runs.examine(plan, n) for n in numbers])
    report = tmp_path / "new" / "folder" / "out.html"
    arguments = ["--problems", "1", "--seed", "5", "--largest", "3", "--report"]
    assert main([*arguments, str(report)]) == 0
    assert report.exists()
    (tmp_path / "file").write_text("")
    assert main([*arguments, str(tmp_path / "file" / "out.html")]) == 2
    assert "cannot make the folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "number",
    [
        1664,  # Cox: sums of dual points over risk sets
        4017,  # directions without penalty whose scores nearly cancel
        6049,  # lbfgs: pairs whose curvature is round-off
    ],
)
def test_problems_that_had_violations_have_none(number):
    assert runs.examine(runs.Plan(1, seed=0), number)["violations"] == []
