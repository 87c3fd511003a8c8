"""The Python block of docs/certificates.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from cvxstructreg.numerics import round_off

PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"


def test_the_check_by_hand_runs():
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    exec(compile(block, str(PAGE), "exec"), names)
    assert names["bound"] > 0


def test_the_page_states_the_charges_of_the_code():
    text = PAGE.read_text(encoding="utf-8")
    assert f"{round_off.UNIT / 2.0**-52:.0f} eps" in text
    assert round_off.REACH == 10.0
    assert "at most ten times" in text
