"""The repr of every public object is one short line, however large its arrays are."""

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from atom_examples import CLASSES

import cvxstructreg as csr
from cvxstructreg.core.atom import Atom
from cvxstructreg.core.solution import Record
from cvxstructreg.forms.centred_hinge import CentredHinges
from cvxstructreg.forms.composed_forms import PowerForm, PulledForm
from cvxstructreg.forms.quadratic_form import DiagonalForm, QuadraticForm
from cvxstructreg.forms.quadratic_penalty import MatrixPenalty
from cvxstructreg.forms.row_selection import Selection
from cvxstructreg.forms.separable import Separable
from cvxstructreg.forms.smoothed_hinge import SmoothedHinge
from cvxstructreg.numerics.arrays import Array
from cvxstructreg.penalties.blocks import BlockNorms
from cvxstructreg.penalties.column_blocks import ColumnBlockNorms
from cvxstructreg.penalties.dissimilarity import PairHinge, PairSquaredHinge
from cvxstructreg.penalties.norms.exclusive_lasso import BlockSquaredL1
from cvxstructreg.penalties.pairs.dead_zone import DeadZone, SquaredDeadZone
from cvxstructreg.solvers.iterate import Iterate

N = 10_000
LONGEST = 250


def atoms():
    """An instance of every atom with 10,000 entries."""
    names = [f"a feature with a long name, number {i}" for i in range(N)]
    chain = np.column_stack([np.arange(N - 1), np.arange(1, N)])
    graph = csr.Graph.from_edges(chain, names=names)
    groups = csr.Groups(chain, n_features=N, feature_names=names)
    ones, binary, many = np.ones(N), np.arange(N) % 2, np.arange(N) % 2_500
    few = {"rows": np.arange(N), "sample_weight": np.linspace(1.0, 2.0, N)}
    return [
        csr.L1(ones),
        csr.Ridge(ones),
        csr.RKHSNorm(),
        csr.Box(-ones, ones),
        csr.NonNegative(),
        csr.Quadratic(matrix=sp.eye_array(N)),
        csr.Laplacian(graph, normalized=True, power=3),
        csr.FeatureNetwork(graph, signed="joint"),
        csr.FusedLasso(graph),
        csr.GroupLasso(groups, weights=ones[:-1]),
        csr.LatentGroupLasso(groups),
        csr.Dissimilarity(chain, weights=ones[:-1]),
        csr.Squared(ones, **few),
        csr.Squared(ones, **few, offset=ones),
        csr.Huber(ones, **few),
        csr.Absolute(ones),
        csr.Quantile(ones, **few, quantile=0.75),
        csr.Poisson(binary, **few, exposure=ones),
        csr.Gamma(ones, **few),
        csr.Cox(ones, **few, event=binary == 1, ties="efron", strata=many),
        csr.Tweedie(binary, **few, power=1.25),
        csr.MultiTask(np.ones((N, 3)), **few, task_weight=[1.0, 2.0, 3.0]),
        csr.Logistic(binary, **few),
        csr.Hinge(binary),
        csr.SquaredHinge(binary),
        csr.Multinomial([f"class {c}" for c in many[:5_000]]),
        csr.MulticlassHinge(many[:5_000]),
        BlockNorms(np.arange(N + 1), ones),
        csr.HuberPenalty(1.0, ones),
        csr.compose(csr.HuberPenalty(1.0, ones), sp.eye_array(N)),
        csr.compose(csr.FromExpression(cp.norm_inf), sp.eye_array(N)),
        csr.FromExpression(lambda w: cp.norm_inf(w), name="the largest weight"),
        csr.TotalVariation((100, 100)),
        csr.TrendFilter(2, graph),
        csr.HuberDifferences(graph),
        csr.Dissimilarity(chain, margin=0.5),
        DeadZone(ones, 0.5),
        SquaredDeadZone(ones, 0.5),
        csr.SLOPE(ones),
        csr.NuclearNorm((100, 100)),
        csr.ExclusiveLasso(csr.Groups.from_labels(many)),
        ColumnBlockNorms(np.arange(N + 1), ones),
        BlockSquaredL1(np.arange(N + 1), ones),
        PairHinge(ones),
        PairSquaredHinge(ones),
        MatrixPenalty(np.eye(100)),
        SmoothedHinge(2.0 * binary - 1.0, ones, None),
    ]


ATOMS = atoms()


def require_short(item):
    for text in (repr(item), str(item)):
        assert "\n" not in text and "array(" not in text and " object at " not in text, text
        assert len(text) <= LONGEST, text


@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: type(atom).__name__)
def test_atoms_and_terms(atom):
    for item in (atom, 2.0 * atom, atom + atom):
        require_short(item)
    assert type(atom).__name__ in repr(atom)


def test_every_atom_of_the_package_is_here():
    assert set(CLASSES) <= {type(atom) for atom in ATOMS}


def problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 100))
    y = X[:, 0] + rng.normal(size=100)
    linear = csr.Problem(csr.Linear(X), csr.Squared(y) + 20.0 * csr.L1(np.ones(100)))
    kernel = csr.Problem(csr.Kernel(X @ X.T + np.eye(100)), csr.Logistic(y > 0) + csr.RKHSNorm())
    return linear, kernel


def test_models_problems_and_solutions():
    for problem in problems():
        solution = problem.solve()
        record = solution.history[-1]
        for item in (problem.given, problem, solution, solution.certificate, solution.problem):
            require_short(item)
        assert isinstance(record, Record) and "\n" not in repr(record)
    require_short(csr.Linear(sp.random_array((N, N), density=1e-4, rng=np.random.default_rng(0))))


def test_structures_and_kernels():
    graph, groups = ATOMS[6].graph, ATOMS[9].groups
    small = csr.Graph.from_edges([(i, i + 1) for i in range(99)], n_nodes=100)
    for item in (graph, groups, csr.WarpedKernel(np.eye(100), small)):
        require_short(item)


def test_paths():
    few = csr.path(problems()[0], n_points=2)
    require_short(csr.Path(np.linspace(1.0, 0.0, N), few.solutions * (N // 2)))


def test_long_objectives_are_shortened():
    objective = sum([csr.L1(np.ones(N))] * 100)
    require_short(objective)
    assert "95 more terms" in repr(objective)
    assert repr(csr.L1() + 2 * csr.Ridge()) == "L1() + 2 * Ridge()"


def test_forms():
    ones = np.ones((N, 1))
    eye = sp.eye_array(N, format="csr")
    form = QuadraticForm(matrix=eye)
    for item in (
        Separable.l1(ones),
        CentredHinges(np.ones((N, 2)), 0.0, 1),
        form,
        QuadraticForm(factor=eye),
        DiagonalForm(ones[:, 0]),
        PowerForm(eye, eye, 2),
        PulledForm(form, eye),
        Selection(np.arange(N), N),
        Selection(np.arange(N), N).T,
        Iterate(ones, np.zeros(1), {0: ones}),
    ):
        require_short(item)


def test_the_sizes_and_the_scalars_are_shown():
    assert repr(csr.L1()) == "L1()"
    assert repr(csr.L1(np.ones(N))) == "L1(weights=<10000 numbers>)"
    assert repr(csr.Box(-1, 2.5)) == "Box(lower=-1, upper=2.5)"
    assert repr(csr.Box(upper=3)) == "Box(upper=3)"
    assert repr(csr.NonNegative()) == "NonNegative()"
    assert repr(Selection([0, 1], 4)) == "Selection(2 x 4)"


def test_atoms_of_others_are_shown_the_same_way():
    @dataclass(frozen=True, eq=False)
    class Mine(Atom):
        target_value: Array
        names: tuple[str, ...]
        d: int = 3
        rate: float = 0.5
        extra: Any = None

    mine = Mine(np.zeros((N, 2)), tuple(map(str, range(N))), rate=0.25, extra=sp.eye_array(N))
    assert (
        repr(mine)
        == "Mine(target_value=<10000 x 2 numbers>, names=<10000 items>, rate=0.25, extra=<10000 x 10000 sparse>)"
    )

    @dataclass(frozen=True, eq=False)
    class Named(Mine):
        def __repr__(self):
            return "my own"

    assert repr(Named(np.zeros(1), ())) == "my own"
