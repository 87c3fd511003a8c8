"""Import optional packages where they are used; the error says how to install a missing one."""

from importlib import import_module
from typing import Any


def optional_import(module: str, extra: str, purpose: str) -> Any:
    """Return the module; if it is not installed, raise an ImportError that names the extra to install.

    Examples
    --------
    >>> optional_import("json", "text", "reading").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        remedy = f'pip install "cvxstructreg[{extra}]"'
        raise ImportError(f"{purpose} needs the package {package}, which cannot be imported; {remedy}") from error
