"""A process with little memory solves a problem with data that do not fit into it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import cvxstructreg as csr

N, D, ENTRIES, AT_ONCE = 20_000, 2_000, 300, 2_500  # 72 MB in CSR
ROOM = 12_000_000

SCRIPT = """
import resource, sys
import numpy as np
import cvxstructreg as csr

path, room = sys.argv[1], int(sys.argv[2])

def solve(blocks, labels, solver):
    problem = csr.Problem(csr.Linear(blocks), csr.Logistic(labels) + 0.01 * len(labels) * csr.L1())
    return problem.solve(solver)

rng = np.random.default_rng(0)
tiny = rng.normal(size=(2000, 30))
solve([tiny[:1000], tiny[1000:]], np.where(tiny[:, 0] > 0, 1, -1), "gram_columns")  # loads and compiles what is needed
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = 1024 * int(status["VmData"].split()[0]) + room
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
blocks = csr.RowBlocks(path, engine="serial", memory_limit=room // 4)
try:
    blocks.gather()
    print("no limit")
except MemoryError:
    pass
found = solve(blocks, blocks.y, "auto")
print(found.status, found.objective, found.certificate.gap, found.n_passes, found.certificate.data.n_rows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are enforced by Linux only")
@pytest.mark.filterwarnings("ignore::cvxstructreg.MemoryLimitWarning")
def test_a_process_with_a_sixth_of_the_memory(tmp_path):
    rng = np.random.default_rng(0)
    parts, labels = [], []
    for _ in range(0, N, AT_ONCE):
        indices = rng.integers(0, D, size=(AT_ONCE, ENTRIES), dtype=np.int32)
        indices.sort(axis=1)
        starts = np.arange(0, AT_ONCE * ENTRIES + 1, ENTRIES, dtype=np.int32)
        X = sp.csr_array((rng.random(AT_ONCE * ENTRIES), indices.ravel(), starts), shape=(AT_ONCE, D))
        X.sum_duplicates()
        parts.append(X)
        labels.append(np.where(X[:, :5].sum(axis=1) + rng.logistic(size=AT_ONCE) > 0.4, 1, -1))
    path = csr.io.write_blocks(tmp_path, zip(parts, labels, strict=True))
    assert 12 * sum(part.nnz for part in parts) > 5 * ROOM
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(path), str(ROOM)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "no limit" not in run.stdout
    status, objective, gap, passes, rows = run.stdout.split()
    y = np.concatenate(labels)
    problem = csr.Problem(csr.Linear(sp.vstack(parts, format="csr")), csr.Logistic(y) + 0.01 * N * csr.L1())
    expected = problem.solve()
    assert status == "optimal" and int(rows) == N and int(passes) <= 15
    assert abs(float(objective) - expected.objective) <= max(float(gap), expected.certificate.gap)


def test_blocks_collected_for_a_solve_are_released():
    """A path collects them once. Blocks that the user collected stay in memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    blocks = csr.RowBlocks([X[:30], X[30:]], engine="serial")
    problem = csr.Problem(csr.Linear(blocks), csr.Squared(X[:, 0] + rng.normal(size=60)) + csr.L1())
    found = problem.solve()
    assert found.status == "optimal" and found.n_passes == 1 and blocks.kept_columns.size == 0
    path = csr.path(problem, strengths=[4.0, 2.0, 1.0])
    assert [solution.n_passes for solution in path] == [1, 0, 0] and blocks.kept_columns.size == 0
    blocks.gather()
    assert problem.solve().n_passes == 0 and blocks.kept_columns.size == 5
