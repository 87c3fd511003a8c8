"""Pages of the API reference, one for each part of the library, from the public names (``__all__``) of its modules.

A new public name appears on its page without any change here.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.pycode import ModuleAnalyzer

from cvxstructreg.core.atom import CAPABILITIES, Atom
from cvxstructreg.core.loss import Loss

PACKAGE = "cvxstructreg"
#: Title and introduction of each page, and the modules whose definitions belong on it (the longest match counts).
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "problems": ("Models and problems", "State a problem, solve it, read the solution.", ("core",)),
    "row_blocks": ("Rows in blocks", "Data with more rows than fit into memory.", ("row_blocks", "runtime")),
    "cvx": ("Plain CVXPY problems", "See the page :doc:`/cvxpy_problems`.", ("cvx",)),
    "losses": ("Losses", "Functions of the scores of labelled rows, summed over rows.", ("losses",)),
    "penalties": ("Penalties", "Functions of the weights or of the scores.", ("penalties", "expressions")),
    "certificates": (
        "Certificates and verification",
        "Bound the distance of a point from the optimum, and compare solvers.",
        ("certificates", "verification"),
    ),
    "solvers": (
        "Solvers",
        "Choose, list and register solvers. :doc:`/solvers` says which solver accepts what.",
        ("solvers", "numerics"),
    ),
    "paths": ("Paths of strengths", "Solutions for a decreasing sequence of strengths.", ("paths", "selection")),
    "graphs": ("Graphs", "The graph class, and builders of graphs from data.", ("graphs",)),
    "groups": ("Groups", "The class of groups, and builders of groups from data.", ("groups", "text")),
    "estimators": ("Estimators", "scikit-learn estimators; :doc:`/estimators` explains them.", ("estimators",)),
    "kernels": ("Kernels", "Kernels that know a graph of examples.", ("warped_kernel",)),
    "plots": ("Plots", "Figures with Matplotlib; :doc:`/plots` shows them.", ("plots",)),
    "datasets": ("Data sets", "Loaders of real data and generators with a known truth.", ("datasets",)),
    "metrics": ("Metrics", "Measures of predictions and of selected features.", ("metrics",)),
    "conventions": ("Conventions", "Strengths of other libraries.", ("conventions",)),
    "testing": ("Your own atoms and solvers", "Base classes, and the tests of what they promise.", ("testing",)),
}
#: The page of names defined anywhere else.
OTHER = ("other", "Further names", "Names that no other page has.")
#: Modules whose own ``__all__`` is public, besides that of the package.
PARTS = (
    "graphs",
    "groups",
    "estimators",
    "plots",
    "datasets",
    "metrics",
    "conventions",
    "testing",
    "solvers",
    "paths",
    "selection",
    "text",
    "io",
)
#: Base classes for the atoms of users; they are imported from their modules.
BASES = {"cvxstructreg.core.atom.Atom": Atom, "cvxstructreg.core.loss.Loss": Loss}


def public_names() -> dict[str, Any]:
    """Every public name as users write it, with its object. The shortest spelling of an object counts."""
    package = import_module(PACKAGE)
    names = {f"{PACKAGE}.{name}": getattr(package, name) for name in package.__all__}
    names = {name: value for name, value in names.items() if not isinstance(value, ModuleType)}
    known = {id(value) for value in names.values()}
    for part in PARTS:
        module = import_module(f"{PACKAGE}.{part}")
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in known and not isinstance(value, ModuleType):
                names[f"{PACKAGE}.{part}.{name}"] = value
                known.add(id(value))
    return names | BASES


def page_of(name: str, value: Any) -> str:
    """The page of a name, by the module that defines the object."""
    if name in BASES:
        return "testing"
    module = getattr(value, "__module__", None) or ""
    if not module.startswith(PACKAGE):
        module = name.rpartition(".")[0]
    room = module.removeprefix(f"{PACKAGE}.").split(".")[0]
    return next((page for page, (_, _, rooms) in PAGES.items() if room in rooms), OTHER[0])


def own_members(cls: type) -> dict[str, Any]:
    """The public methods and properties that this package documents, inherited ones included."""
    members = {}
    shown_once = set() if cls in BASES.values() else {*CAPABILITIES, *vars(Atom), *vars(Loss)}
    for name, value in inspect.getmembers_static(cls):
        if issubclass(cls, Atom) and name in shown_once:
            continue  # on the page of the base classes
        inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        ours = (getattr(inner, "__module__", "") or "").startswith(PACKAGE)
        if not name.startswith("_") and ours and inspect.isfunction(inner) and inspect.getdoc(inner):
            members[name] = value
    return members


def member_entries(name: str, cls: type, shown: dict[Any, str]) -> list[str]:
    """The directives of the members, and links to those that another class of the page has shown already."""
    again, entries = [], []
    for member, value in own_members(cls).items():
        first = shown.setdefault(value, f"{name}.{member}")
        if first == f"{name}.{member}":
            entries.append(f"   .. {'autoproperty' if isinstance(value, property) else 'automethod'}:: {member}")
        else:
            again.append(f":py:obj:`{member} <{first}>`")
    links = [f"   Also, as in other classes of this page: {', '.join(again)}."] if again else []
    return links + entries


def comment_of(name: str) -> str:
    """The comment ``#: ...`` above the definition of a constant, in whichever module it is defined."""
    attribute = ("", name.rpartition(".")[2])
    for module in [name for name in sys.modules if name.startswith(PACKAGE)]:
        analyzer = ModuleAnalyzer.for_module(module)
        analyzer.analyze()
        if attribute in analyzer.attr_docs:
            return " ".join(analyzer.attr_docs[attribute])
    raise ValueError(f"the public constant {name} has no comment '#: ...' above its definition")


def entry(name: str, value: Any, shown: dict[Any, str]) -> str:
    """The directive that documents one name; ``shown`` collects the members of the classes of its page."""
    if isinstance(value, type):
        members = [] if issubclass(value, Warning | Exception) else member_entries(name, value, shown)
        return "\n\n".join([f".. autoclass:: {name}", *members])
    if callable(value):
        return f".. autofunction:: {name}"
    return f".. py:data:: {name}\n\n   {comment_of(name)}"


def write_pages(folder: Path) -> None:
    """Write the index and one page for each part; files whose text has not changed are left alone."""
    folder.mkdir(exist_ok=True)
    pages: dict[str, list[tuple[str, Any]]] = {page: [] for page in [*PAGES, OTHER[0]]}
    for name, value in public_names().items():
        pages[page_of(name, value)].append((name, value))
    pages = {page: names for page, names in pages.items() if names}
    titles = {page: (title, text) for page, (title, text, _) in PAGES.items()} | {OTHER[0]: OTHER[1:]}
    for page, names in pages.items():
        title, text = titles[page]
        body = [title, "=" * len(title), "", text, ""]
        shown: dict[Any, str] = {}
        for name, value in sorted(names, key=lambda pair: (not isinstance(pair[1], type), pair[0].lower())):
            heading = name.removeprefix(f"{PACKAGE}.")
            body += [heading, "-" * len(heading), "", entry(name, value, shown), ""]
        write(folder / f"{page}.rst", "\n".join(body))
    index = [
        "API reference",
        "=============",
        "",
        "Every public name, with its formula and an example. Names without a module are written ``csr.Name`` after",
        "``import cvxstructreg as csr``.",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - page",
        "     - names",
    ]
    for page, names in pages.items():
        role = ", ".join(f":py:obj:`{name.removeprefix(PACKAGE + '.')} <{name}>`" for name, _ in names)
        index += [f"   * - :doc:`{page}`", f"     - {role}"]
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in pages), ""]
    write(folder / "index.rst", "\n".join(index))
    for old in set(folder.glob("*.rst")) - {folder / f"{page}.rst" for page in [*pages, "index"]}:
        old.unlink()


def write(path: Path, text: str) -> None:
    """Write a file unless it has this text already, so that Sphinx reads only what changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
