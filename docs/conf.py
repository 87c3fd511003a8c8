"""The site: ``sphinx-build -W docs docs/_build/html``, with the ``docs`` extra installed and without a network."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# One thread for linear algebra, also in the kernels of the notebooks: on shared machines more threads are much slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import cvxstructreg

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import atom_tables  # noqa: E402
import notebook_files  # noqa: E402
import public_names  # noqa: E402

project = "cvxstructreg"
author = "the cvxstructreg developers"
project_copyright = f"2026, {author}"
version = release = cvxstructreg.__version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "plain_docstrings",
    "notebook_files",
]
exclude_patterns = ["_build", "_ext", "**/.ipynb_checkpoints"]
public_names.write_pages(HERE / "api")
atom_tables.write_tables(HERE / "api")
notebook_files.copy_sources(HERE.parent / "examples" / "notebooks", HERE / "notebooks")

# Pages
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# Notebooks: executed once, then taken from the cache until their code changes; an error in a cell ends the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # seconds for one cell; all notebooks together take about a minute on a free machine
nb_execution_excludepatterns = ["notebooks/solutions/*"]  # tests/test_notebooks.py runs these
nb_execution_show_tb = True
nb_merge_streams = True

# API reference
autodoc_typehints = "none"  # the docstrings describe the types
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # as they stand in the code: dtype=float
napoleon_google_docstring = False
napoleon_use_param = False  # words of type descriptions are no references
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # as parameters: several names, underscores at the end
add_module_names = False
toc_object_entries = False
python_use_unqualified_type_names = True

#: Pages without a list of their sections at the side, so that code and tables have more room.
WIDE = ["index", "benchmarks", "choose", "estimators", "papers/README", "solvers"]
WIDE += [f"notebooks/{path.stem}" for path in (HERE / "notebooks").glob("[0-9]*.md")]

# Looks. MathJax comes from an installed package, because pages must not load anything from elsewhere.
html_theme = "pydata_sphinx_theme"
html_title = "cvxstructreg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_show_sourcelink = False
html_copy_source = False
mathjax_path = "mathjax/tex-mml-chtml.js"

found = find_spec("sphinx-mathjax-offline")
if found is None or found.origin is None:
    raise ImportError('the site needs the package sphinx-mathjax-offline; pip install "cvxstructreg[docs]"')
mathjax_source = str(Path(found.origin).parent / "static" / "mathjax")
