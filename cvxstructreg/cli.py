"""The command line: ``cvxstructreg verify`` and ``cvxstructreg crosscheck``."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import cvxstructreg
from cvxstructreg.crosscheck.command import DESCRIPTION, add_arguments, crosscheck
from cvxstructreg.solvers import registry
from cvxstructreg.verification import Report, table, verify

#: The names of the methods. They are listed here so that ``--help`` loads no data.
METHOD_NAMES = (
    "feature-network",
    "laplacian-elastic-net",
    "mixed-graph",
    "multiclass-dissimilarity",
    "sentence-group-lasso",
)
#: The method whose solver takes longest to compile, and the seconds to wait for a process that does it.
COMPILED_AHEAD, PATIENCE = METHOD_NAMES[-1], 120.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0 if all solvers agree, 1 if not, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    return crosscheck(options) if options.command == "crosscheck" else _verify(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cvxstructreg", description="Structured regularization on CVXPY.")
    parser.add_argument("--version", action="version", version=f"cvxstructreg {cvxstructreg.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "verify",
        help="solve a small instance of each method with every solver and compare with CVXPY",
        description="Solves a small instance of each of the five methods, on real data, with the CVXPY reference and "
        "with every solver that accepts it. Exits with code 1 if results differ beyond their certificates.",
    )
    check.add_argument("--method", action="append", choices=METHOD_NAMES, help="only this method (may be repeated)")
    check.add_argument("--solvers", type=_names, metavar="A,B", help="only these solvers, in addition to the reference")
    check.add_argument("--tol", type=_positive, default=1e-6, help="certified relative gap to reach (default 1e-6)")
    check.add_argument("--quiet", action="store_true", help="print no progress lines")
    check.add_argument("--json", action="store_true", help="print a list of records instead of the table")
    summary = "solve random problems with every solver and compare with textbook formulas"
    add_arguments(commands.add_parser("crosscheck", help=summary, description=DESCRIPTION))
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in registry.names()]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"no solver {', '.join(map(repr, unknown)) or 'given'}; choose from {', '.join(registry.names())}"
        )
    return names


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text!r}")
    return value


def _verify(options: argparse.Namespace) -> int:
    from cvxstructreg.instances import METHODS  # loads scikit-learn's data sets

    reports = []
    methods = options.method or list(METHODS)
    ahead = CompileAhead() if COMPILED_AHEAD in methods[1:] and not options.solvers else None
    for method in methods:
        problem = METHODS[method]()
        if ahead is not None and method == COMPILED_AHEAD:
            ahead.wait()
        solvers = options.solvers
        if solvers is not None:
            solvers = [solver.name for solver in registry.accepting(problem) if solver.name in solvers]
        tell = None if options.quiet else Progress(method)
        reports.append(verify(problem, solvers, options.tol, method, progress=tell))
    problems = [line for report in reports for line in report.disagreements]
    if options.json:
        print(json.dumps([_finite(record) for report in reports for record in report.records()], indent=2))
    else:
        print("\n".join(table(reports)))
        print()
        print(_verdict(reports, options.tol))
        print(_next_steps(reports))
    for line in problems:
        print(line, file=sys.stderr)
    return 1 if problems else 0


def _verdict(reports: list[Report], tol: float) -> str:
    bad = sum(not report.agrees for report in reports)
    if bad:
        return f"{bad} of {len(reports)} methods have solvers that do NOT agree within their certificates:"
    methods = "1 method" if len(reports) == 1 else f"{len(reports)} methods"
    return f"{methods}, all solvers agree; every certified relative gap is at most {tol:g}."


def _next_steps(reports: list[Report]) -> str:
    """What to try next: look at a disagreement, or verify one's own solver."""
    bad = [report.rows[0].method for report in reports if not report.agrees]
    if bad:
        again = f"cvxstructreg verify --method {bad[0]}"
        return f"Run one method again with `{again}`, or look for a smaller case with `cvxstructreg crosscheck`."
    return (
        "Next: compare your own solver, csr.verify(problem, [my_solver]); see examples/verify_your_own_solver.py.\n"
        "      Certify weights from anywhere, csr.certify(problem, coef, intercept), and find out why they are not\n"
        "      optimal, csr.diagnose(problem, coef, intercept)."
    )


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in record.items()
    }


class CompileAhead:
    """Solves the method that takes longest to compile in another process, on another core.

    Numba then finds the compiled loops in its cache. Errors are ignored: if there is no such cache, the loops are
    compiled when they are needed.
    """

    CODE = f"from cvxstructreg.instances import METHODS; METHODS[{COMPILED_AHEAD!r}]().solve()"

    def __init__(self, code: str = CODE) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        if sys.executable and (os.cpu_count() or 1) > 1:
            none = subprocess.DEVNULL
            self.process = subprocess.Popen([sys.executable, "-c", code], stdin=none, stdout=none, stderr=none)

    def wait(self) -> None:
        """Wait until the loops are compiled."""
        if self.process is None:
            return
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Progress:
    """One line on stderr for each solver, printed when it starts."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __call__(self, solver: str) -> None:
        """Print the line of a solver."""
        print(f"{self.method}: {solver} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
