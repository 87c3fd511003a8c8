"""The base class for penalties of your own."""

from __future__ import annotations

from typing import ClassVar

from cvxstructreg.core.atom import Atom


class Penalty(Atom):
    """Base class for a penalty of your own: define ``expr(z)``, and as many other methods of an atom as you know.

    The table of methods is in the docstring of :class:`cvxstructreg.core.atom.Atom`, and
    ``cvxstructreg.testing.check_atom`` compares each of them with ``expr``. If the expression is all you have,
    :class:`cvxstructreg.FromExpression` makes a penalty of it in one line, which is also faster: it recognises known
    structure, and computes the prox and a bound of the conjugate.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import cvxstructreg as csr
    >>> class Largest(csr.Penalty):
    ...     '''max_j |w_j|.'''
    ...
    ...     def expr(self, z):
    ...         return cp.max(cp.abs(z))
    >>> Largest()([1.0, -3.0])
    3.0
    >>> csr.FromExpression(cp.norm_inf)([1.0, -3.0])
    3.0
    """

    convention: ClassVar[str] = "intercepts are not penalised"
