"""The command ``cvxstructreg verify``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cvxstructreg as csr
from cvxstructreg import cli, instances
from cvxstructreg.certificates.certificate import Certificate
from cvxstructreg.verification import disagreements, verify


def test_one_method_as_a_table(capsys):
    assert cli.main(["verify", "--method", "feature-network"]) == 0
    out = capsys.readouterr().out
    for word in ("method", "solver", "certified gap", "feature-network", "569 x 30", "fista", "admm", "cvxpy"):
        assert word in out
    assert "all solvers agree" in out


def test_progress_and_next_steps(capsys):
    assert cli.main(["verify", "--method", "feature-network", "--solvers", "newton"]) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == ["feature-network: cvxpy ...", "feature-network: newton ..."]
    assert "Next: compare your own solver" in captured.out
    assert cli.main(["verify", "--method", "feature-network", "--solvers", "newton", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_second_process_compiles_the_slowest_method(monkeypatch, capsys):
    """It runs only where there is time before that method."""
    started, waited = [], []
    monkeypatch.setattr(cli, "CompileAhead", lambda: started.append(1) or cli)
    monkeypatch.setattr(cli, "wait", lambda: waited.append(1), raising=False)
    monkeypatch.setattr(cli, "verify", lambda *a, **k: verify(instances.feature_network(), ["newton"]))
    for names, count in (([cli.COMPILED_AHEAD], 0), (["feature-network", cli.COMPILED_AHEAD], 1)):
        assert cli.main(["verify", *(word for name in names for word in ("--method", name))]) == 0
        assert len(started) == len(waited) == count
    capsys.readouterr()


def test_verify_waits_for_the_second_process_but_not_for_ever(monkeypatch):
    monkeypatch.setattr(cli.os, "cpu_count", lambda: 2)
    compile(cli.CompileAhead.CODE, "code", "exec")
    assert cli.COMPILED_AHEAD in instances.METHODS
    codes = []
    for code, patience in (("pass", 60.0), ("raise SystemExit(3)", 60.0), ("import time; time.sleep(60)", 0.1)):
        monkeypatch.setattr(cli, "PATIENCE", patience)
        ahead = cli.CompileAhead(code)
        ahead.wait()
        codes.append(ahead.process.returncode)
    assert codes[:2] == [0, 3] and codes[2] != 0  # a failure is ignored, and a process that hangs is ended


def test_one_core_compiles_when_needed(monkeypatch):
    monkeypatch.setattr(cli.os, "cpu_count", lambda: 1)
    ahead = cli.CompileAhead()
    ahead.wait()
    assert ahead.process is None


def test_json_is_a_list_of_records(capsys):
    assert cli.main(["verify", "--method", "laplacian-elastic-net", "--solvers", "fista", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["solver"] for record in records] == ["cvxpy", "fista"]
    for record in records:
        assert {"method", "solver", "objective", "relative_gap", "seconds"} <= set(record)
        assert 0 <= record["relative_gap"] <= 1e-6


def test_the_names_are_those_of_the_instances():
    assert tuple(instances.METHODS) == cli.METHOD_NAMES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "--method", "nothing"], "invalid choice"),
        (["verify", "--solvers", "magic"], "choose from"),
        (["verify", "--solvers", ","], "choose from"),
        (["verify", "--tol", "-1"], "positive"),
        ([], "required"),
    ],
)
def test_wrong_arguments_exit_with_two(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        cli.main(arguments)
    assert error.value.code == 2
    assert message in capsys.readouterr().err


def test_a_disagreement_exits_with_one(monkeypatch, capsys):
    from cvxstructreg.solvers.first_order import proximal_gradient

    def wrong(problem, start, tol, first_step=1.0):
        from cvxstructreg.solvers.iterate import Iterate

        yield Iterate(np.zeros((30, 1)), np.zeros(1), exhausted=True)

    monkeypatch.setattr(proximal_gradient.SOLVER, "run", wrong)
    assert cli.main(["verify", "--method", "feature-network", "--solvers", "fista"]) == 1
    captured = capsys.readouterr()
    assert "do NOT agree" in captured.out
    assert "NOT CERTIFIED feature-network: fista" in captured.err


def test_a_false_certificate_is_found():
    right = Certificate("duality_gap", 1.0, 1.0, 0.0, 0.0)
    wrong = Certificate("duality_gap", 2.0, 2.0, 0.0, 0.0)
    negative = Certificate("duality_gap", 1.0, 1.5, -0.5, -0.5)
    assert disagreements({"a": right, "b": right}, 1e-6, 1.0, "m") == []
    assert "a found 1, below the bound 2 of b" in disagreements({"a": right, "b": wrong}, 1e-6, 1.0, "m")[0]
    assert any("negative gap" in line for line in disagreements({"a": negative}, 1e-6, 1.0, "m"))


def test_a_report_reads_well():
    X = np.eye(3)
    report = csr.verify(csr.Problem(csr.Linear(X), csr.Hinge([0, 1, 1]) + csr.Ridge()))
    assert report.agrees
    assert "fista refuses: Hinge(3 rows) has no gradient" in str(report)
    assert "<table" in report._repr_html_()
    general = {"interior_point", "semismooth_newton", "semismooth_cg", "admm"}
    assert {row.solver for row in report.rows} == {"cvxpy", "augmented_lagrangian", *general}
    assert len(report.records()) == len(report.rows)
