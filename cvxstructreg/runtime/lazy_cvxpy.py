"""CVXPY, imported when first used: its import takes longer than all else, and fast solves do not need it.

All other files write ``from cvxstructreg.runtime.lazy_cvxpy import cp``. A file that derives classes from CVXPY's
imports CVXPY itself, and is imported inside functions. So do the textbook formulas of the cross-check, which share no
code with the library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["cp", "is_expression", "when_imported"]

if TYPE_CHECKING:
    import cvxpy as cp
else:

    class _OnFirstUse:
        """The names of CVXPY; the first one that is read imports it."""

        def __getattr__(self, name: str) -> Any:
            import cvxpy

            return getattr(cvxpy, name)

    cp = _OnFirstUse()


def is_expression(value: Any) -> bool:
    """Whether a value is a CVXPY expression. Before CVXPY is imported there are none.

    Examples
    --------
    >>> is_expression(2.0), is_expression(cp.Constant(2.0))
    (False, True)
    """
    return "cvxpy" in sys.modules and isinstance(value, cp.Expression)


def when_imported(act: Callable[[], None]) -> None:
    """Call ``act`` now if CVXPY is imported, and otherwise at the end of its import, whoever imports it."""
    waiting = _Waiting(act)
    sys.meta_path.insert(0, waiting)  # before the look at sys.modules: another thread may import CVXPY in between
    if "cvxpy" in sys.modules:
        waiting.finish()


class _Waiting(MetaPathFinder):
    """Finds CVXPY by the other finders, and acts when it has been executed."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act

    def finish(self) -> None:
        """Act, and wait no longer."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        self.act()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """CVXPY with a loader that acts at the end; no other module is found here."""
        if name != "cvxpy":
            return None
        others = [finder for finder in sys.meta_path if not isinstance(finder, _Waiting)]
        spec = next((found for finder in others if (found := finder.find_spec(name, path, target))), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def then_act(module: ModuleType) -> None:
                execute(module)
                self.finish()

            spec.loader.exec_module = then_act  # type: ignore[method-assign]
        return spec
