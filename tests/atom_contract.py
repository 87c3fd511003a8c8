"""What every atom owes, in this package or in a file of somebody else: the checks of one class."""

import numpy as np

from cvxstructreg.core.atom import Atom
from cvxstructreg.testing import check_atom

SEED = 5


def examples_of(cls):
    """The tiny instances that a class gives of itself, with the shapes that they act on."""
    return list(cls.examples(np.random.default_rng(SEED)))


def require_documentation(cls):
    """A formula, a convention, and an example in the docstring."""
    assert cls.formula != Atom.formula
    assert cls.convention
    assert "Examples\n" in cls.__doc__ and ">>>" in cls.__doc__


def require_capabilities(cls):
    """The capabilities of a class are the methods that it defines or inherits; Lipschitz constants are of gradients."""
    for name in cls.capabilities:
        assert any(name in vars(base) for base in cls.__mro__ if base is not Atom), name
    assert "grad" in cls.capabilities or "lipschitz" not in cls.capabilities


def require_contract(cls, seeds=(0, 1)):
    """All of it."""
    require_documentation(cls)
    require_capabilities(cls)
    examples = examples_of(cls)
    assert examples
    for atom, shape in examples:
        for seed in seeds:
            check_atom(atom, shape, seed)
