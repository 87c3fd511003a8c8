"""Every example runs from the command line and prints something."""

from __future__ import annotations

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


def test_the_readme_example_runs(capsys):
    blocks = (ROOT / "README.md").read_text().split("```python\n")[1:]
    assert len(blocks) == 1
    exec(compile(blocks[0].split("```")[0], "README.md", "exec"), {})
    out = capsys.readouterr().out
    assert "minimize over w in R^30" in out
    assert "duality_gap" in out
