"""Formulas that have one home in the package, and how to find them written out elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Formula:
    """``matches(expression, source)`` says whether an expression writes the formula out."""

    name: str
    matches: Callable[[ast.expr, Callable[[ast.expr], ast.expr]], bool]
    homes: tuple[str, ...]  # files, or folders that end with a slash

    def found(self, code: str) -> Iterator[int]:
        """The lines on which the formula stands."""
        for expressions, values in _scopes(code):

            def source(node: ast.expr, values: dict[str, ast.expr] = values) -> ast.expr:
                """What a local variable was set to; any other expression is its own source."""
                return values.get(node.id, node) if isinstance(node, ast.Name) else node

            for node in expressions:
                if self.matches(node, source):
                    yield node.lineno

    def is_home(self, path: str) -> bool:
        return any(path == home or (home.endswith("/") and path.startswith(home)) for home in self.homes)


@cache
def _scopes(code: str) -> list[tuple[list[ast.expr], dict[str, ast.expr]]]:
    """The expressions of each function and what its variables are set to; without functions, of the whole file."""
    tree = ast.parse(code)
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] or [tree]
    return [([node for node in ast.walk(scope) if isinstance(node, ast.expr)], _assigned(scope)) for scope in scopes]


def _assigned(scope: ast.AST) -> dict[str, ast.expr]:
    pairs = [(node.targets[0], node.value) for node in ast.walk(scope) if isinstance(node, ast.Assign)]
    return {target.id: value for target, value in pairs if isinstance(target, ast.Name)}


def _called(node: ast.expr) -> str:
    """The name of the function that is called, such as ``np.maximum``; empty for other expressions."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _is_number(node: ast.expr, *numbers: float) -> bool:
    return isinstance(node, ast.Constant) and node.value in numbers


def _positive_parts(node: ast.expr) -> list[ast.expr]:
    """The x of ``max(0, x)``, by Python or NumPy."""
    if _called(node) not in ("max", "np.maximum") or len(node.args) != 2 or node.keywords:
        return []
    zeros = [_is_number(x, 0) for x in node.args]
    return [x for x, zero in zip(node.args, zeros, strict=True) if not zero] if any(zeros) else []


def _hinge(node: ast.expr, source: Callable) -> bool:
    """max(0, 1 - m)."""
    parts = [source(x) for x in _positive_parts(node)]
    return any(isinstance(x, ast.BinOp) and isinstance(x.op, ast.Sub) and _is_number(x.left, 1) for x in parts)


def _block_norms(node: ast.expr, source: Callable) -> bool:
    """Sums over blocks: alone by ``np.add.reduceat``, or under a root."""
    if _called(node) == "np.add.reduceat":
        return True
    inside = ast.walk(source(node.args[0])) if _called(node) == "np.sqrt" else ()
    return any(_called(x).split(".")[-1] in ("sums", "block_sums") for x in inside if isinstance(x, ast.expr))


def _function_norm(node: ast.expr, source: Callable) -> bool:
    """The clipped inner product theta'h, and the factors 2 lam of its gradient and 4 lam of its conjugate."""
    for x in _positive_parts(node):
        inner = source(x)
        while isinstance(inner, ast.UnaryOp) or _called(inner) in ("float", "np.sum"):
            inner = inner.operand if isinstance(inner, ast.UnaryOp) else inner.args[0]
        product = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult | ast.Mult)
        if (product or _called(inner) == "np.vdot") and _names(inner) & {"theta", "h", "image", "shift"}:
            return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _is_number(node.left, 2, 4):
        return _is_strength(source(node.right))
    return False


def _is_strength(node: ast.expr) -> bool:
    """Whether an expression is the strength of the function norm."""
    return ast.unparse(node).split(".")[-1] in ("lam", "rkhs") or ast.unparse(node).endswith("norm.scale")


def _names(node: ast.expr) -> set[str]:
    """The names of variables and attributes in an expression."""
    named = [x for x in ast.walk(node) if isinstance(x, ast.Name | ast.Attribute)]
    return {x.id if isinstance(x, ast.Name) else x.attr for x in named}


#: The checks of the library write every formula out, to compare.
CHECKS = ("crosscheck/", "testing/")
HINGE = Formula("hinge", _hinge, ("forms/shortfall.py", "solvers/groups/block_model.py", *CHECKS))  # 1 - cos^2
BLOCKS = Formula(
    "norms of blocks",
    _block_norms,
    # sums of absolute values and of hashes
    ("numerics/block_norms.py", "solvers/smooth/preconditioners.py", "groups/members.py", *CHECKS),
)
NORM = Formula("norm of the function", _function_norm, ("forms/function_norm.py", *CHECKS))
FORMULAS = (HINGE, BLOCKS, NORM)

#: How each formula was once written a second time.
SECOND_TIMES = (
    (HINGE, "np.sum(s * np.maximum(0.0, 1.0 - smooth.y * z))"),
    (HINGE, "def gap(z, a):\n    short = 1.0 - y * z\n    return np.sum(s * np.maximum(0.0, short) - a * short)"),
    (HINGE, "float(np.sum(self.C * np.maximum(0.0, 1.0 - margins)))"),
    (BLOCKS, "lengths = np.sqrt(np.add.reduceat(np.sum(u**2, axis=1), groups.indptr[:-1]))"),
    (BLOCKS, "def norms(self, x):\n    return np.sqrt(self.sums(x * x))"),
    (BLOCKS, "def norms(self, x):\n    squares = self.sums(x * x)\n    return np.sqrt(squares)"),
    (NORM, "total += parts.rkhs * max(0.0, float(np.sum(theta * h)))"),
    (NORM, "self.lam * max(0.0, float(np.vdot(at.theta, at.h)))"),
    (NORM, "lam * (max(0.0, float(a @ image)) + s * b * b)"),
    (NORM, "self.s = max(0.0, -float(np.sum(self.shift * values)))"),
    (NORM, "gradient = gradient + 2.0 * parts.rkhs * (scores - b)"),
    (NORM, "square = float(np.vdot(total, product)) / (4.0 * parts.function_norm.scale)"),
    (NORM, "def grad(norm, theta):\n    lam = norm.scale\n    return 2 * lam * theta"),
)
