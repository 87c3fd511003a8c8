"""Settings of all tests: repeatable hypothesis runs, one BLAS thread, and a limit on skipped tests."""

import random
from itertools import groupby
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  loads the BLAS libraries, which must be there to be limited
from hypothesis import settings
from threadpoolctl import threadpool_limits

# The same examples in every run, so that a failure can be repeated; look for new ones with
# pytest --hypothesis-profile=explore
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.register_profile("seeded", deadline=None, database=None)  # others, by --hypothesis-seed
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--max-skips",
        type=int,
        default=5,
        metavar="N",
        help="fail if more than N tests are skipped, so that a skip cannot look like a success (default 5)",
    )
    parser.addoption(
        "--blas-threads", type=int, default=1, metavar="N", help="number of threads of the BLAS libraries (default 1)"
    )
    parser.addoption(
        "--shuffle", type=int, metavar="SEED", help="run the test files, and the tests of each, in a random order"
    )


def pytest_configure(config: pytest.Config) -> None:
    # The matrices are tiny: threads only make them slower.
    threadpool_limits(config.getoption("blas_threads"))


@pytest.hookimpl(tryfirst=True)  # pytest then puts tests together again that share a fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("shuffle")
    if seed is None:
        return
    rng = random.Random(seed)
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    rng.shuffle(files)
    for tests in files:
        rng.shuffle(tests)
    items[:] = [test for tests in files for test in tests]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Each test file to one worker, unless --dist says otherwise: files share compiled loops and references."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getvalue("dist") == "load" else None


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


@pytest.fixture(scope="module")
def first_states(request: pytest.FixtureRequest) -> list[tuple[np.random.Generator, Any]]:
    """The random generators of a test file, with their states before its first test."""
    numbers = [value for value in vars(request.module).values() if isinstance(value, np.random.Generator)]
    return [(generator, generator.bit_generator.state) for generator in numbers]


@pytest.fixture(autouse=True)
def same_numbers_in_any_order(request: pytest.FixtureRequest) -> None:
    """Let every test draw the same numbers, whichever tests ran before it."""
    if isinstance(request.node, pytest.Function):
        for generator, state in request.getfixturevalue("first_states"):
            generator.bit_generator.state = state
