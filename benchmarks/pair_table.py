"""The tables of pairs: how many times faster than CVXPY, for each loss and each penalty."""

from __future__ import annotations

import numpy as np
from measure import Result


def tables(results: list[Result]) -> str:
    """One table for each section of pairs."""
    sections = dict.fromkeys(result.section for result in results if result.section.startswith("pairs"))
    return "\n\n".join(_table(name, [r for r in results if r.section == name]) for name in sections)


def _table(section: str, results: list[Result]) -> str:
    ours = {r.work: r for r in results if not r.solver.startswith("cvxpy")}
    peers = {r.work: r for r in results if r.solver.startswith("cvxpy")}
    losses = dict.fromkeys(work.split(", ")[0] for work in ours)
    penalties = dict.fromkeys(work.split(", ", 1)[1] for work in ours)
    head = [f"| {section} | {' | '.join(losses)} |", "|---" * (len(losses) + 1) + "|"]
    rows = [
        f"| {name} | " + " | ".join(_cell(ours.get(f"{loss}, {name}"), peers) for loss in losses) + " |"
        for name in penalties
    ]
    return "\n".join([_summary(section, ours, peers), "", *head, *rows])


def _cell(found: Result | None, peers: dict[str, Result]) -> str:
    """The ratio, a lower bound if CVXPY was stopped, or the seconds if it was not run; unproved results say so."""
    if found is None:
        return "-"
    peer = peers.get(found.work)
    text = f"{found.seconds:.2g} s" if peer is None else f"{peer.seconds / found.seconds:.1f}"
    text = f"> {text}" if peer is not None and "(" in peer.solver else text
    return f"{text}, not proved" if "(" in found.solver else text


def _summary(section: str, ours: dict[str, Result], peers: dict[str, Result]) -> str:
    proved = sum("(" not in found.solver for found in ours.values())
    words = f"{section[0].upper()}{section[1:]}: {proved} of {len(ours)} proved"
    ratios = [peers[work].seconds / found.seconds for work, found in ours.items() if work in peers]
    if ratios:
        slower = sum(ratio < 1.0 for ratio in ratios)
        words += (
            f"; {slower} slower than CVXPY; the least ratio is {min(ratios):.1f}, the median {np.median(ratios):.1f}"
        )
    targets = {found.target for found in ours.values() if found.target}
    return f"{words} (target: {', '.join(sorted(targets))})."
