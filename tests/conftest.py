"""Settings of all tests: repeatable hypothesis runs, one BLAS thread, and a limit on skipped tests."""

from typing import Any

import pytest
import scipy.linalg  # noqa: F401  loads the BLAS libraries, which must be there to be limited
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The matrices are tiny: threads only make them slower, and results differ from machine to machine.
threadpool_limits(1)

# The same examples in every run, so that a failure can be repeated; look for new ones with
# pytest --hypothesis-profile=explore
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--max-skips",
        type=int,
        default=5,
        metavar="N",
        help="fail if more than N tests are skipped, so that a skip cannot look like a success (default 5)",
    )


def _skips_beyond_limit(config: pytest.Config) -> int:
    """How many tests were skipped, if that is too many, else 0; the workers of pytest-xdist do not count."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = 0 if reporter is None else len(reporter.stats.get("skipped", []))
    is_worker = hasattr(config, "workerinput")
    return skipped if skipped > config.getoption("max_skips") and not is_worker else 0


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and _skips_beyond_limit(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = _skips_beyond_limit(config)
    if skipped:
        limit = config.getoption("max_skips")
        terminalreporter.section("too many skipped tests", red=True)
        terminalreporter.line(f"{skipped} tests were skipped; at most {limit} may be (--max-skips)")
