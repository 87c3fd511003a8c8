"""Short HTML forms of objects for notebooks. They inherit the colours of the page, also in dark mode."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

_LEFT = "text-align:left;padding:1px 12px 1px 0;border:none;vertical-align:top"
_RIGHT = _LEFT.replace("text-align:left", "text-align:right")
_FRAME = "display:inline-block;border-left:3px solid currentColor;padding:2px 0 2px 10px;background:none;color:inherit"
#: The widest bar, in pixels.
WIDEST = 120


def card(title: str, rows: Iterable[tuple[str, Any]] = (), *more: str, note: str = "") -> str:
    """Return a title, rows of a label and a value, further HTML, and a note in small print. All text is escaped.

    Examples
    --------
    >>> card("Answer", [("a < b", 42)], note="checked")  # doctest: +ELLIPSIS
    '<div style="...<b>Answer</b>...a &lt; b...42...<small>checked</small></div>'
    """
    cells = "".join(
        f'<tr><td style="{_LEFT};opacity:0.75">{html.escape(label)}</td>'
        f'<td style="{_LEFT}">{html.escape(str(value))}</td></tr>'
        for label, value in rows
    )
    body = f'<table style="background:none;color:inherit;margin:2px 0">{cells}</table>' if cells else ""
    small = f"<small>{html.escape(note)}</small>" if note else ""
    return f'<div style="{_FRAME}"><b>{html.escape(title)}</b>{body}{"".join(more)}{small}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """Return an HTML table; the first ``left`` columns and all bars are aligned left, the other cells right.

    Examples
    --------
    >>> "<th" in table(["name", "weight"], [["a", 1.0]])
    True
    """

    def cells(tag: str, values: Sequence[Any]) -> str:
        styles = (_LEFT if n < left or isinstance(value, Markup) else _RIGHT for n, value in enumerate(values))
        return "".join(
            f'<{tag} style="{style}">{value if isinstance(value, Markup) else html.escape(str(value))}</{tag}>'
            for style, value in zip(styles, values, strict=True)
        )

    lines = "".join(f'<tr style="background:none">{cells("td", row)}</tr>' for row in rows)
    top = f'<tr style="border-bottom:1px solid currentColor">{cells("th", head)}</tr>' if head else ""
    return f'<table style="background:none;color:inherit;margin:2px 0">{top}{lines}</table>'


def bars(values: Sequence[tuple[str, float]]) -> str:
    """Return a table of names and numbers with bars; a bar of a negative number is hollow."""
    largest = max((abs(number) for _, number in values), default=0.0) or 1.0
    rows = [(name, f"{number:.4g}", _bar(number, largest)) for name, number in values]
    return table((), rows)


class Markup(str):
    """HTML that is not escaped again."""

    __slots__ = ()


def _bar(number: float, largest: float) -> Markup:
    hollow = "border:1px solid currentColor;box-sizing:border-box;"
    fill = "background:currentColor;opacity:0.5;" if number > 0 else hollow
    width = round(WIDEST * abs(number) / largest)
    return Markup(f'<span style="display:inline-block;height:0.7em;{fill}width:{width}px"></span>')


def items(lines: Iterable[str]) -> str:
    """Return an HTML list; empty without lines."""
    inner = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul style="margin:2px 0">{inner}</ul>' if inner else ""


def named(names: Sequence[str] | None, number: int) -> str:
    """Return the name, or the number if there are no names."""
    return str(number) if names is None else str(names[number])
