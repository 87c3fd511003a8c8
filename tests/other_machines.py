"""Run the tests as other machines would: other instruction sets, thread counts, orders of tests and random examples.

    python tests/other_machines.py                    every variant, one after the other, with all tests
    python tests/other_machines.py --only nehalem     one variant; may be repeated
    python tests/other_machines.py --quick            the slice that .ci/run takes: about a minute
    python tests/other_machines.py --only zen -- tests/test_paths.py -n 2      the rest goes to pytest

No test may depend on the last digits of a result, on the order of ties or tests, or on the BLAS. A variant that this
processor, NumPy or BLAS cannot show is reported as "not runnable", with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Which tests of --quick: solvers of each kind, certificates, paths, builders with ties, and a few docstrings.
QUICK = [
    "tests/test_certificates.py",
    "tests/test_estimators_cv.py",
    "tests/test_graph_builders.py",
    "tests/test_group_builders.py",
    "tests/test_known_answers.py",
    "tests/test_other_libraries.py",
    "tests/test_paths.py",
    "tests/test_sentence_groups.py",
    "tests/test_topic_groups.py",
    "cvxstructreg/groups",
    "cvxstructreg/estimators",
]

# OpenBLAS names the oldest of the processors that share the same code.
SAME_CODE = {"prescott": {"prescott", "katmai", "coppermine", "northwood", "banias"}, "zen": {"zen", "haswell"}}

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
PROCESSORS = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")

# What a process with the settings of a variant really computes with, as JSON.
PROBE = """
import json
import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info
try:
    from numpy._core import _multiarray_umath as numpy_core
except ImportError:
    from numpy.core import _multiarray_umath as numpy_core
np.ones((50, 50)) @ np.ones((50, 50)), scipy.linalg.cholesky(np.eye(50))  # an instruction that is missing shows here
features = numpy_core.__cpu_features__
blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
print(json.dumps({
    "numpy": [name for name in numpy_core.__cpu_dispatch__ if features[name]],
    "blas": [library.get("architecture") or library["internal_api"] for library in blas],
    "threads": [library["num_threads"] for library in blas],
}))
"""


@dataclass(frozen=True)
class Variant:
    """One other machine: the BLAS kernels, NumPy's instruction sets, Numba's processor, threads, and the order."""

    coretype: str | None = None
    numpy: str | None = None  # "no-avx512", or "baseline" for none of the sets that NumPy chooses from
    numba: str | None = None
    threads: int = 1
    seed: int | None = None
    pytest: tuple[str, ...] = field(default=())

    def settings(self, dispatched: Sequence[str], numba_cache: str) -> dict[str, str]:
        """Return the environment variables; `dispatched` are NumPy's names of the sets of this processor."""
        settings = dict.fromkeys(THREADS, str(self.threads))
        settings["NUMBA_CACHE_DIR"] = numba_cache  # nothing that was compiled for another processor
        if self.coretype:
            settings["OPENBLAS_CORETYPE"] = self.coretype
        if self.numba:
            settings["NUMBA_CPU_NAME"] = self.numba
        if self.numpy:
            settings["NPY_DISABLE_CPU_FEATURES"] = " ".join(self.disabled(dispatched))
        return settings

    def disabled(self, dispatched: Sequence[str]) -> list[str]:
        """Return NumPy's names of the sets to do without; they depend on its version."""
        if self.numpy == "baseline":
            return list(dispatched)
        return [name for name in dispatched if name.startswith("AVX512") or name == "X86_V4"]

    def options(self) -> list[str]:
        """Return the options for pytest."""
        options = ["--blas-threads", str(self.threads), *self.pytest]
        if self.seed is not None:
            options += ["--shuffle", str(self.seed)]
            options += ["--hypothesis-profile", "seeded", "--hypothesis-seed", str(self.seed)]
        return options


VARIANTS = {
    "oldest": Variant("Prescott", "baseline", "generic"),
    "oldest-shuffled": Variant("Prescott", "baseline", "generic", seed=1),
    "shuffled": Variant(seed=2),
    "two-threads": Variant(threads=2),
    "nehalem": Variant("Nehalem", "no-avx512", "nehalem"),
    "haswell": Variant("Haswell", "no-avx512", "haswell"),
    "zen": Variant("Zen", "no-avx512", "x86-64-v3"),
    "skylakex": Variant("SkylakeX"),
    "prescott-blas": Variant("Prescott"),
    "numpy-no-avx512": Variant(numpy="no-avx512"),
    "numpy-baseline": Variant(numpy="baseline"),
    "numba-generic": Variant(numba="generic"),
    "shuffled-two-threads": Variant("Haswell", "baseline", "generic", threads=2, seed=3),
}


def environment(settings: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process with these settings, whatever those of this process are."""
    return {**{name: value for name, value in os.environ.items() if name not in PROCESSORS}, **settings}


def probe(settings: dict[str, str]) -> tuple[dict[str, list], str]:
    """Return what a process with these variables computes with, and the reason if it cannot be run."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment(settings), capture_output=True, text=True, cwd=ROOT
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return {}, f"a process with these settings ends: {lines[-1]}"
    return json.loads(done.stdout), ""


def why_not(variant: Variant, settings: dict[str, str], dispatched: Sequence[str]) -> str:
    """Return why the variant cannot be run here, or nothing."""
    if variant.numpy and not variant.disabled(dispatched):
        return f"NumPy has none of the instruction sets to disable here, only {' '.join(dispatched) or 'its baseline'}"
    if variant.threads > (os.cpu_count() or 1):
        return f"{variant.threads} threads need as many processors, there are {os.cpu_count()}"
    found, reason = probe(settings)
    if reason:
        return reason
    if variant.coretype:
        names = SAME_CODE.get(variant.coretype.lower(), {variant.coretype.lower()})
        others = sorted({name for name in found["blas"] if name.lower() not in names})
        if others or not found["blas"]:
            return f"the BLAS computes as {', '.join(others) or 'unknown'} and not as {variant.coretype}"
    still = set(variant.disabled(dispatched) if variant.numpy else ()) & set(found["numpy"])
    if still:
        return f"NumPy still uses {' '.join(sorted(still))}"
    if variant.threads not in found["threads"]:
        return f"the BLAS has {found['threads']} threads and not {variant.threads}"
    return ""


def run(name: str, variant: Variant, dispatched: Sequence[str], given: Sequence[str], logs: Path) -> bool:
    """Run one variant, print a line about it, and return whether it did not fail."""
    with tempfile.TemporaryDirectory(prefix="numba-") as cache:
        settings = variant.settings(dispatched, cache)
        shown = " ".join(f"{key}={value!r}" for key, value in settings.items() if key != "NUMBA_CACHE_DIR")
        reason = why_not(variant, settings, dispatched)
        if reason:
            print(f"{name:22} not runnable        {reason}", flush=True)
            return True
        command = [sys.executable, "-m", "pytest", "-q", *variant.options(), *given]
        log = logs / f"{name}.log"
        start = time.perf_counter()
        with log.open("w") as out:
            code = subprocess.run(
                command, env=environment(settings), cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
            ).returncode
    seconds = time.perf_counter() - start
    print(f"{name:22} {'passed' if code == 0 else 'FAILED':8} {seconds:6.0f} s   {shown}", flush=True)
    if code:
        lines = log.read_text().splitlines()
        print(*(f"    {line}" for line in lines if line.startswith(("FAILED", "ERROR"))), sep="\n")
        print(f"    {lines[-1] if lines else f'exit code {code}'}   (all of it: {log})", flush=True)
    return code == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the variants; return 1 if one of them failed or none could be run."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], epilog="Further arguments go to pytest, after -- if need be."
    )
    parser.add_argument("--list", action="store_true", help="print the variants and what they set, and run nothing")
    parser.add_argument("--only", action="append", choices=list(VARIANTS), metavar="NAME", help="run only this variant")
    parser.add_argument("--quick", action="store_true", help="the oldest machine, tests shuffled, on a slice of them")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="where the output of pytest goes (a temporary one)")
    chosen, given = parser.parse_known_args(arguments)
    given = [argument for argument in given if argument != "--"]
    dispatched = probe({})[0].get("numpy", [])
    if chosen.list:
        for name, variant in VARIANTS.items():
            settings = variant.settings(dispatched, "<temporary>")
            print(f"{name:22}", *(f"{key}={value!r}" for key, value in settings.items()), *variant.options())
        return 0
    names = chosen.only or (["oldest-shuffled"] if chosen.quick else list(VARIANTS))
    logs = chosen.logs or Path(tempfile.mkdtemp(prefix="other-machines-"))
    logs.mkdir(parents=True, exist_ok=True)
    if chosen.quick:
        given = [*QUICK, *given]
    passed = [run(name, VARIANTS[name], dispatched, given, logs) for name in names]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
