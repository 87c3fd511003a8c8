"""The guides in docs/extending: each shows one whole file, which keeps the contract as it stands."""

import doctest
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from atom_contract import require_contract

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.testing import check_solver

ROOT = Path(__file__).parent.parent
GUIDES = ROOT / "docs" / "extending"
ATOMS = {"penalty": "StraightLines", "loss": "SquaredEpsilonInsensitive"}


def blocks_of(name):
    """The Python blocks of a guide: the whole file, then what is done with it."""
    text = (GUIDES / f"{name}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def imported(name, folder):
    """The whole file of a guide, written to disk as it stands and imported as a module."""
    path = folder / f"guide_{name}.py"
    path.write_text(blocks_of(name)[0], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=[*ATOMS, "solver"])
def guide(request, tmp_path_factory):
    """The name of a guide and the module of its whole file."""
    module = imported(request.param, tmp_path_factory.mktemp("guide"))
    yield request.param, module
    del sys.modules[module.__name__]


def used(name, module):
    """The names that the blocks after the whole file define, run one after the other."""
    names = {"__name__": "guide", **{key: value for key, value in vars(module).items() if not key.startswith("__")}}
    exec(compile("\n".join(blocks_of(name)[1:]), f"{name}.md", "exec"), names)
    return names


@pytest.mark.parametrize("guide", ATOMS, indirect=True)
def test_the_whole_file_keeps_the_contract_of_atoms(guide):
    name, module = guide
    cls = getattr(module, ATOMS[name])
    assert issubclass(cls, Atom) and not hasattr(csr, cls.__name__)
    require_contract(cls)


@pytest.mark.parametrize("guide", ATOMS, indirect=True)
def test_the_examples_of_its_docstrings_run(guide):
    results = doctest.testmod(guide[1])
    assert results.attempted and not results.failed


def test_the_lines_that_use_it_run_and_are_certified(guide):
    names = used(*guide)
    fast, reference = names["fast"], names["reference"]
    assert reference.solver == "cvxpy" and fast.solver != "cvxpy"
    for solution in (fast, reference):
        assert solution.status == "optimal" and solution.certificate.kind == "duality_gap"
        assert 0 <= solution.certificate.relative_gap <= 1e-6
    # both objectives are above the optimum, each by no more than its own gap
    difference = fast.objective - reference.objective
    assert -reference.certificate.gap - 1e-12 <= difference <= fast.certificate.gap + 1e-12


@pytest.mark.parametrize("name", [*ATOMS, "solver"])
def test_every_method_is_explained_and_every_quoted_line_is_there(name):
    text, source = (GUIDES / f"{name}.md").read_text(encoding="utf-8"), blocks_of(name)[0]
    explained = text.split("## Line by line\n")[1].split("\n## ")[0]
    quoted = [line for group in re.findall(r"^- (`.*?`):? ", explained, re.MULTILINE) for line in group.split("`, `")]
    quoted = [line.strip("`") for line in quoted]
    for line in quoted:
        assert line in source, line
    methods = re.findall(r"^    def (\w+)|^(?:class|def) (\w+)|^    (\w+): ", source, re.MULTILINE)
    for method in (next(filter(None, found)) for found in methods):
        assert any(re.search(rf"\b{method}\b", line) for line in quoted), f"{method} is not explained"


def test_the_weights_of_the_penalty_guide_are_the_bent_line(tmp_path):
    module = imported("penalty", tmp_path)
    names = used("penalty", module)
    assert abs(names["fast"].coef - names["bend"]).max() < 1
    with pytest.raises(ValueError, match="at least 3 weights"):
        module.StraightLines(2)


def test_the_loss_of_the_guide_is_the_squared_loss_without_its_tube(tmp_path):
    loss = imported("loss", tmp_path).SquaredEpsilonInsensitive
    y, z = np.array([1.0, -2.0, 0.5]), np.array([0.0, 1.0, 0.55])
    assert loss(y, epsilon=0.0).value(z) == pytest.approx(csr.Squared(y).value(z), rel=1e-12)
    assert loss(y, epsilon=0.1).value(z) == pytest.approx(0.5 * (0.9**2 + 2.9**2), rel=1e-12)
    for epsilon in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match="epsilon must be finite"):
            loss(y, epsilon=epsilon)
    with pytest.raises(ValueError, match="one target for each row"):
        loss(np.zeros((3, 2)))


def solver_problems(rng):
    """Problems that the solver of the guide accepts: dense and sparse, smooth losses, with and without intercept."""
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + 2.0 + 0.3 * rng.normal(size=40)
    sparse = sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    yield csr.Problem(csr.Linear(X), csr.Logistic(y > 2) + 1.0 * csr.L1() + 0.5 * csr.Ridge())
    yield csr.Problem(csr.Linear(sparse, intercept=False), csr.Squared(y) + 2.0 * csr.L1())
    yield csr.Problem(csr.Linear(X), csr.Squared(y[:20], rows=np.arange(20)) + csr.Box(-0.5, 0.5) + csr.Ridge())


def test_the_solver_of_the_guide_keeps_the_contract_of_solvers(tmp_path):
    solver = imported("solver", tmp_path).SOLVER
    before = csr.solvers.names()
    with csr.solvers.register(solver):
        for problem in solver_problems(np.random.default_rng(0)):
            assert solver.accepts(problem)
            check_solver("ista", problem, tol=1e-5)
        with pytest.raises(ValueError, match="relative_step must be between 0 and 2, got 3"):
            problem.solve("ista", relative_step=3)
        with pytest.raises(ValueError, match="does not accept this problem: Hinge"):
            csr.Problem(csr.Linear(np.eye(2)), csr.Hinge([0, 1]) + csr.L1()).solve("ista")
    assert csr.solvers.names() == before


def test_contributing_leads_to_the_guides():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for name in (*ATOMS, "solver"):
        assert f"docs/extending/{name}.md" in text
    for path in re.findall(r"\]\((?!https?:)([^)#]+)", text):
        assert (ROOT / path).exists(), path
    for guide in GUIDES.glob("*.md"):
        for path in re.findall(r"\]\((?!https?:)([^)#]+)", guide.read_text(encoding="utf-8")):
            assert (guide.parent / path).exists(), path
