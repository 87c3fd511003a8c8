"""Every example runs from the command line and prints something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example(script):
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "gap" in done.stdout


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "papers").glob("*_20*.py")), ids=lambda path: path.name)
def test_paper_on_made_data(script, tmp_path):
    folders = dict.fromkeys(("CVXSTRUCTREG_DATA", "XDG_CACHE_HOME", "SCIKIT_LEARN_DATA"), str(tmp_path))
    command = [
        sys.executable,
        "-W",
        "error",
        script,
        "--quick",
        "--json",
        tmp_path / "r.json",
        "--figure",
        tmp_path / "r.png",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **folders})
    assert done.returncode == 0, done.stderr
    content = json.loads((tmp_path / "r.json").read_text())
    assert content["tables"] and content["protocol"] and content["seconds"] > 0
    assert (tmp_path / "r.png").stat().st_size > 1000


def test_the_readme_example_runs(capsys):
    blocks = (ROOT / "README.md").read_text().split("```python\n")[1:]
    assert len(blocks) == 1
    exec(compile(blocks[0].split("```")[0], "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "minimize over w in R^30" in out
    assert "duality_gap" in out
