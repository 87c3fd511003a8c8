"""Vectors as columns: the array methods of atoms treat an array of shape (m,) as one of shape (m, 1).

Every formula of an atom is written for arrays of shape (m, k). Given (m,) instead of (m, 1), NumPy would broadcast the
labels (m, 1) against the vector to m x m numbers and return a wrong value without an error. Each array method of an
atom is therefore wrapped once, when its class is made. The wrapper turns a vector into a column and checks the shape. A
returned array has as many dimensions as the argument.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cvxstructreg.core.checks import real_array

#: The array methods of atoms and their numbers of arguments. The first argument is an array; for ``hessp`` both are.
ARRAY_METHODS = {
    "value": 1,
    "prox": 2,
    "grad": 1,
    "hessp": 2,
    "hess_diag": 1,
    "derivatives": 1,
    "hess_rows": 1,
    "hess_factor": 1,
    "hess_bound": 1,
    "conj": 1,
    "dual_norm": 1,
    "rebalance": 2,
    "into_domain": 1,
}
_MATRIX, _FLOAT = np.ndarray, np.dtype(np.float64)
_MISSING: Any = object()
_Method = Callable[..., Any]


def accept_vectors(cls: type) -> None:
    """Wrap the array methods that a class defines: they then accept vectors and lists, and check shapes.

    A method is wrapped once: methods that are inherited or borrowed from another atom stay as they are.
    """
    for name, count in ARRAY_METHODS.items():
        method = getattr(cls, name, None)
        if not inspect.isfunction(method) or hasattr(method, "takes_vectors"):
            continue
        wrap = _of_any_arguments
        if len(inspect.signature(method).parameters) == 1 + count:
            wrap = _of_two_arrays if name == "hessp" else _of_two_arguments if count == 2 else _of_one_argument
        wrapped = functools.wraps(method)(wrap(method))
        wrapped.__dict__["takes_vectors"] = True
        setattr(cls, name, wrapped)


# Solvers call these methods in their loops, mostly with two-dimensional float arrays. There is one wrapper for each
# number of arguments, because ``*arguments`` would take twice the time; ``_call`` handles all other input. Arrays from
# compiled loops have a dtype that equals NumPy's own but is another object.


def _of_one_argument(method: _Method) -> _Method:
    def on_columns(self: Any, z: Any = _MISSING, **named: Any) -> Any:
        if type(z) is _MATRIX and z.ndim == 2 and (z.dtype is _FLOAT or z.dtype == _FLOAT) and not named:
            self.check_shape(z.shape)
            return method(self, z)
        return _call(method, self, (z,), named)

    return on_columns


def _of_two_arguments(method: _Method) -> _Method:
    def on_columns(self: Any, v: Any = _MISSING, t: Any = _MISSING, **named: Any) -> Any:
        is_float = type(v) is _MATRIX and v.ndim == 2 and (v.dtype is _FLOAT or v.dtype == _FLOAT)
        if is_float and t is not _MISSING and not named:
            self.check_shape(v.shape)
            return method(self, v, t)
        return _call(method, self, (v, t), named)

    return on_columns


def _of_two_arrays(method: _Method) -> _Method:
    def on_columns(self: Any, z: Any = _MISSING, p: Any = _MISSING, **named: Any) -> Any:
        if type(z) is type(p) is _MATRIX and z.ndim == 2 and z.dtype == p.dtype == _FLOAT and z.shape == p.shape:
            self.check_shape(z.shape)
            return method(self, z, p)
        return _call(method, self, (z, p), named)

    return on_columns


def _of_any_arguments(method: _Method) -> _Method:
    def on_columns(self: Any, *given: Any, **named: Any) -> Any:
        return _call(method, self, given, named)

    return on_columns


def _call(method: _Method, atom: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call the method with its arrays as columns; vectors in give vectors out."""
    signature = inspect.signature(method)
    if any(x is _MISSING for x in given):  # passed under the method's own argument name
        by_position = zip(list(signature.parameters)[1:], given, strict=True)
        named = {name: x for name, x in by_position if x is not _MISSING} | named
        given = ()
    bound = signature.bind(atom, *given, **named)
    who, arguments = f"{type(atom).__name__}.{method.__name__}", list(bound.args)
    arrays = dict(zip((1, 2) if method.__name__ == "hessp" else (1,), list(signature.parameters)[1:], strict=False))
    shapes = [np.shape(arguments[i]) for i in arrays]
    for i, name in arrays.items():
        arguments[i] = _columns(atom, arguments[i], f"{name} in {who}")
    if len({arguments[i].shape for i in arrays}) > 1:
        raise ValueError(f"{who} got z of shape {shapes[0]} and p of shape {shapes[1]}; give both the same shape")
    return _as_given(method(*arguments, **bound.kwargs), flat=all(len(shape) == 1 for shape in shapes))


def _columns(atom: Any, z: Any, name: str) -> Any:
    """The argument as a float array of shape (m, k), checked against the atom."""
    array = np.asarray(z)
    if array.dtype != _FLOAT:
        array = real_array(array, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (m,) or (m, k), got shape {array.shape}")
    if array.ndim == 2:
        atom.check_shape(array.shape)
        return array
    try:
        atom.check_shape((array.size, 1))
    except ValueError as error:
        raise ValueError(f"{error} ({name} has shape {array.shape}, which is treated as one column)") from None
    return array.reshape(-1, 1)


def _as_given(result: Any, flat: bool) -> Any:
    """Single columns of a result as vectors if vectors were given; numbers are returned unchanged."""
    if not flat:
        return result
    if isinstance(result, tuple):
        return tuple(_as_given(part, flat) for part in result)
    return result[:, 0] if isinstance(result, np.ndarray) and result.ndim == 2 else result
