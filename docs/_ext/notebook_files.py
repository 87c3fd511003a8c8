"""The files of the notebooks, their kernels, and MathJax.

Before the build, the sources of the notebooks are copied among the pages. After it, each notebook is also written
as an .ipynb file for Jupyter, Colab and Binder, and MathJax is copied beside the pages.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import nbclient.client
import nbformat
from jupyter_client import AsyncKernelManager
from myst_nb.core.read import read_myst_markdown_notebook
from traitlets import CaselessStrEnum, Integer, default


class LocalKernelManager(AsyncKernelManager):
    """Kernels that talk over Unix sockets: they open no port, and ipykernel has nothing to warn about."""

    transport = CaselessStrEnum(["tcp", "ipc"], default_value="ipc", config=True)
    sockets = TemporaryDirectory(prefix="kernels")

    @default("ip")
    def _socket(self) -> str:
        return str(Path(self.sockets.name, uuid4().hex))  # absolute: the kernel runs in another folder


class PatientClient(nbclient.client.NotebookClient):
    """Executes a notebook; on a busy machine a kernel may need more than the usual minute to start."""

    startup_timeout = Integer(600, config=True)

    @default("kernel_manager_class")
    def _local(self) -> type[AsyncKernelManager]:
        return LocalKernelManager if os.name == "posix" else AsyncKernelManager


def copy_sources(examples: Path, target: Path) -> None:
    """Copy the notebooks and their solutions to a folder of the site, and remove copies without a source."""
    sources = {target / path.relative_to(examples): path for path in examples.rglob("*.md")}
    for copy, source in sources.items():
        copy.parent.mkdir(exist_ok=True)
        text = source.read_bytes()
        if not copy.exists() or copy.read_bytes() != text:  # an unchanged page is not read again
            copy.write_bytes(text)
    for copy in [*target.glob("[0-9]*.md"), *target.glob("solutions/*.md")]:
        if copy not in sources:
            copy.unlink()


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """A MyST source as a notebook without outputs."""
    notebook = read_myst_markdown_notebook(source.read_text(encoding="utf-8"), path=source)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the same file from the same source
    return notebook


def finished(app: Any, error: Exception | None) -> None:
    """Copy MathJax and write the notebooks."""
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "mathjax"
    if not target.exists():
        source = Path(app.config.mathjax_source)
        (target / "output" / "chtml").mkdir(parents=True)
        shutil.copy(source / "tex-mml-chtml.js", target)
        shutil.copytree(source / "output" / "chtml" / "fonts", target / "output" / "chtml" / "fonts")
    for source in sorted(Path(app.srcdir, "notebooks").glob("[0-9]*.md")):
        nbformat.write(notebook_of(source), Path(app.outdir, "notebooks", f"{source.stem}.ipynb"))


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    nbclient.client.NotebookClient = PatientClient  # nbclient.execute takes the class from here
    app.add_config_value("mathjax_source", "", "html")
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
