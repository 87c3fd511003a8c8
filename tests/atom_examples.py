"""Every atom of the package, with the tiny examples that it gives of itself."""

import importlib
import pkgutil

import pytest
from atom_contract import examples_of

import cvxstructreg.expressions
import cvxstructreg.losses
import cvxstructreg.penalties
from cvxstructreg.core.atom import Atom


def discovered():
    """Every atom class of the losses, penalties and expressions that gives examples of itself."""
    found = set()
    for package in (cvxstructreg.losses, cvxstructreg.penalties, cvxstructreg.expressions):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            for item in vars(importlib.import_module(info.name)).values():
                if isinstance(item, type) and issubclass(item, Atom) and item.__module__ == info.name:
                    found.add(item)
    concrete = {cls for cls in found if cls.expr is not Atom.expr and hasattr(cls, "examples")}
    return sorted(concrete, key=lambda cls: cls.__name__)


CLASSES = discovered()
EXAMPLES = [
    pytest.param(atom, shape, id=f"{cls.__name__}-{number}")
    for cls in CLASSES
    for number, (atom, shape) in enumerate(examples_of(cls))
]
