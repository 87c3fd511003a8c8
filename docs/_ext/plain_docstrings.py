"""Formulas of docstrings as they stand: ``lam |w|_1`` is neither a substitution nor a reference."""

from __future__ import annotations

import re
from typing import Any

#: Literals, roles, links and emphasised words, which are left alone.
MARKED = re.compile(r"(``.*?``|:[\w:]+:`[^`]*`|`[^`]*`_+|(?<![\w*)\]'])\*[A-Za-z][A-Za-z -]*\*(?![\w*]))")
SPECIAL = re.compile(r"[|*\\]|(?<=\w)_(?!\w)")

#: Sections of numpydoc that begin their entries with names.
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Yields")


def escaped(line: str) -> str:
    """The line with every character that has a meaning for docutils escaped, except in literals and roles."""
    parts = MARKED.split(line)
    return "".join(part if number % 2 else SPECIAL.sub(r"\\\g<0>", part) for number, part in enumerate(parts))


def plain(lines: list[str]) -> list[str]:
    """The lines of a docstring, escaped outside examples, literal blocks and tables."""
    result = []
    in_example = in_literal = in_section = False
    for number, line in enumerate(lines):
        in_example = (in_example or line.lstrip().startswith(">>>")) and bool(line.strip())
        if in_literal and line.strip() and not line.startswith(" "):
            in_literal = False
        heading = number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}
        in_section = (
            line.strip() in ("Parameters", "Attributes", "Returns", "Raises", "Yields") if heading else in_section
        )
        name_line = in_section and not line.startswith(" ")  # napoleon escapes the names of parameters itself
        skip = in_example or in_literal or name_line or set(line.strip()) <= set("-= ")
        result.append(line if skip else escaped(line))
        if line.rstrip().endswith("::") and not in_example:
            in_literal = True
    return result


def process(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Escape a docstring in place, before napoleon reads its sections."""
    lines[:] = plain(lines)
    if what in ("attribute", "property") and lines:
        lines[0] = f": {lines[0]}"  # napoleon takes what stands before the first colon for a type: here nothing


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
