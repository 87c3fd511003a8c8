"""The worked example of CONTRIBUTING.md does what the text says."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def example():
    """The names that the Python blocks of the guide define, run one after the other."""
    blocks = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 2
    names = {"__name__": "contributing"}
    exec(compile("\n".join(blocks), str(GUIDE), "exec"), names)
    return names


def test_admm_is_certified_and_agrees_with_the_reference(example):
    fast, reference = example["fast"], example["reference"]
    assert (fast.solver, fast.status) == ("admm", "optimal")
    assert (reference.solver, reference.status) == ("cvxpy", "optimal")
    for solution in (fast, reference):
        assert solution.certificate.kind == "duality_gap"
        assert 0 <= solution.certificate.relative_gap <= 1e-6
    # both objectives are above the optimum, each by no more than its own gap
    difference = fast.objective - reference.objective
    assert -reference.certificate.gap - 1e-12 <= difference <= fast.certificate.gap + 1e-12


def test_the_weights_are_the_bent_line_of_the_example(example):
    assert abs(example["fast"].coef - example["bend"]).max() < 1


def test_the_new_penalty_refuses_what_it_cannot_do(example):
    with pytest.raises(ValueError, match="at least 3 weights"):
        example["TrendFilter"](2)
