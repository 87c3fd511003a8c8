"""Build the sdist and the wheel, install the wheel in a fresh environment, and test it there.

    python tests/release.py                        this interpreter, newest dependencies: what .ci/run does
    python tests/release.py --lowest               the lowest versions that pyproject.toml allows
    python tests/release.py --python python3.13    another interpreter; may be repeated
    python tests/release.py --dist dist            keep the two files, for an upload

The wheel is built from the unpacked sdist, so both are complete or the build fails. In each environment the wheel is
installed alone, and the command line solves one method with all solvers; a line that needs an extra must name it. Then
the extras come, and a slice of the tests of the sdist runs against the installed package. No source of the package is
left beside them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = ("arrow", "networks", "plots", "text")
TOOLS = ("pytest", "hypothesis", "pandas")

#: Certificates, known answers, the command line, figures, HTML forms and plain CVXPY problems: about half a minute.
SLICE = (
    "tests/test_certificates.py",
    "tests/test_cli.py",
    "tests/test_html.py",
    "tests/test_known_answers.py",
    "tests/test_plots.py",
    "tests/test_structreg_method.py",
)

#: Files of the wheel that a wrong list in pyproject.toml would leave out.
IN_WHEEL = ("cvxstructreg/py.typed", "cvxstructreg/datasets/")
IN_SDIST = ("CITATION.cff", "CHANGELOG.md", "LICENSE", "README.md", "docs/conf.py", "examples/notebooks", "tests")

#: What a user without the extra "plots" reads.
WITHOUT_PLOTS = """
import cvxstructreg as csr
try:
    csr.plots.prox(csr.L1())
except ImportError as error:
    assert "cvxstructreg[plots]" in str(error), error
else:
    raise AssertionError("matplotlib is installed")
"""


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a command without any setting that could bring in the sources; a failure ends this program."""
    print("+", *command, flush=True)
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=settings)
    if done.returncode:
        sys.exit(f"release: {command[0]} failed with code {done.returncode}")


def environment(folder: Path, python: str) -> Path:
    """The interpreter of a new, empty environment."""
    run(python, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def lowest() -> Iterator[str]:
    """``name==version`` for each ``name>=version`` of the project and its extras."""
    table = PROJECT["project"]
    extras = [text for extra in (*EXTRAS, "test") for text in table["optional-dependencies"][extra]]
    for text in [*table["dependencies"], *extras]:
        found = re.fullmatch(r"(?P<name>[\w-]+)>=(?P<version>[\d.]+)(;.*)?", text.replace(" ", ""))
        if found:
            yield f"{found['name']}=={found['version']}"
        elif not text.startswith("cvxstructreg["):
            raise ValueError(f"pyproject.toml: expected name>=version, got {text!r}")


def build(folder: Path, dist: Path) -> tuple[Path, Path]:
    """Build the sdist, unpack it and build the wheel from it; returns the wheel and the unpacked folder."""
    python = environment(folder / "build", sys.executable)
    run(python, "-m", "pip", "install", "-q", *PROJECT["build-system"]["requires"])
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", dist, cwd=ROOT)
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    missing = [name for name in IN_SDIST if not (unpacked / name).exists()]
    run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", dist, cwd=unpacked)
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        missing += [name for name in IN_WHEEL if not any(file.startswith(name) for file in archive.namelist())]
    if missing:
        sys.exit(f"release: {', '.join(missing)} missing; see [tool.hatch.build] in pyproject.toml")
    return wheel, unpacked


def test(python: Path, wheel: Path, tests: Path, versions: list[str], empty: Path) -> None:
    """Install the wheel alone and try it; then install the extras and run the slice of the tests."""
    limits = empty / "versions.txt"
    limits.write_text("\n".join(versions))
    install = (python, "-m", "pip", "install", "-q", "-c", limits)
    run(*install, wheel)
    run(python, "-c", WITHOUT_PLOTS, cwd=empty)
    run(python, "-m", "cvxstructreg.cli", "verify", "--method", "laplacian-elastic-net", "--quiet", cwd=empty)
    run(*install, f"{wheel}[{','.join(EXTRAS)}]", *TOOLS)
    # Old packages warn about new packages that they use; that is no fault of this one.
    warnings = ("-o", "filterwarnings=default") if versions else ()
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=append", *warnings, *SLICE, cwd=tests)


def main() -> None:
    """Build, then test in one environment for each interpreter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", help="an interpreter to test with (default: this one)")
    parser.add_argument("--lowest", action="store_true", help="install the lowest allowed versions of all dependencies")
    parser.add_argument("--dist", type=Path, help="keep the sdist and the wheel in this folder")
    options = parser.parse_args()
    versions = list(lowest()) if options.lowest else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel, unpacked = build(folder, folder / "dist")
        shutil.rmtree(unpacked / "cvxstructreg")  # the tests must find the installed package
        for number, python in enumerate(options.python or [sys.executable]):
            fresh = environment(folder / f"fresh{number}", python)
            test(fresh, wheel, unpacked, versions, folder)
            shutil.rmtree(folder / f"fresh{number}")
        if options.dist:
            options.dist.mkdir(exist_ok=True)
            for file in wheel.parent.iterdir():
                shutil.copy(file, options.dist)
        print(f"{wheel.name}: installed and tested with {', '.join(options.python or [sys.executable])}")


if __name__ == "__main__":
    main()
