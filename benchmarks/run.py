"""All benchmarks in one command: our solvers and their peers side by side on one thread, as ratios.

    python benchmarks/run.py                       # all sections with available data and peers: an hour
    python benchmarks/run.py network lasso         # some sections
    python benchmarks/run.py --json out.json --figure out.png
    python benchmarks/run.py network --markdown   # records of the sections, and the tables of the pages

Times are the median of several runs after one that warms caches and compilers ("first run"); tasks that take minutes
are run once. Our times include the certificate. "x ours" is the time relative to the first line of the same task. "gap"
is the relative gap: the certified gap for our solvers, and for peers our certificate of *their* weights or the error of
their objective. The docstring of each module in this folder describes how its peers are run. Nothing is downloaded; set
``CVXSTRUCTREG_DATA`` to the data folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import blocks
import data
import denoising
import elastic_net
import figures
import first_use
import group_peers
import groups
import hinge_text
import losses
import manifold
import multiclass
import network
import off_the_track
import parallel_folds
import paths
import plain_cvxpy
import prototype
import records
from measure import Result
from threadpoolctl import threadpool_limits

SECTIONS: dict[str, Callable[[], Iterable[Result]]] = {
    **network.SECTIONS,
    **elastic_net.SECTIONS,
    **groups.SECTIONS,
    **group_peers.SECTIONS,
    **paths.SECTIONS,
    **parallel_folds.SECTIONS,
    **prototype.SECTIONS,
    **first_use.SECTIONS,
    **off_the_track.SECTIONS,
    **denoising.SECTIONS,
    **hinge_text.SECTIONS,
    **plain_cvxpy.SECTIONS,
    **losses.SECTIONS,
    **blocks.SECTIONS,
    **{f"multiclass_{name}": run for name, run in multiclass.SECTIONS.items()},
    **{f"manifold_{name}": run for name, run in manifold.SECTIONS.items()},
}
NEED_NEWSGROUPS = network.NEED_NEWSGROUPS | elastic_net.NEED_NEWSGROUPS | groups.NEED_NEWSGROUPS | paths.NEED_NEWSGROUPS


def main() -> None:
    """Run the requested sections and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"any of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--json", help="also write the results to this file, after every result")
    parser.add_argument(
        "--known", nargs="*", default=[], help="files of --json with results of earlier runs to include"
    )
    parser.add_argument(
        "--resume", help="a file of --json of a run of pairs or of hinge_text that was cut off; it is continued"
    )
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="store a record of each section in docs, and write the tables of the pages",
    )
    parser.add_argument("--figure", help="draw the ratios and the growth of cost to this file (needs matplotlib)")
    parser.add_argument("--blocks-gb", type=float, help="size of the folder of blocks of rows (default: 0.5)")
    options = parser.parse_args()
    blocks.SIZE = options.blocks_gb or blocks.SIZE
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown section {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    results = [
        Result(**entry) for name in options.known for entry in json.loads(Path(name).read_text(encoding="utf-8"))
    ]
    if options.resume and Path(options.resume).exists():
        earlier_run = json.loads(Path(options.resume).read_text(encoding="utf-8"))
        for module in (off_the_track, hinge_text):
            module.resume(Result(**entry) for entry in earlier_run)
    with threadpool_limits(1):
        for name in options.sections or (() if options.known else SECTIONS):
            if name in NEED_NEWSGROUPS and not data.available():
                print(f"skipped {name}: 20 Newsgroups not found in {data.folder()} (set CVXSTRUCTREG_DATA)")
                continue
            earlier = len(results)
            for result in SECTIONS[name]():
                results.append(result)
                print(f"{name}: {result.work} | {result.solver} {result.seconds:.3g} s", flush=True)
                if options.json:
                    with open(options.json, "w", encoding="utf-8") as file:
                        json.dump([asdict(result) for result in results], file, indent=2)
            if options.markdown:
                sized = f" --blocks-gb {blocks.SIZE:g}" if name in blocks.SIZED else ""
                sized += " --resume results.json" if options.resume else ""
                records.store(name, results[earlier:], options=sized)
                records.fill()
    print(f"\n{records.machine()}\n")
    print(records.table(results))
    if options.figure:
        figures.draw(results, records.ratios(results), options.figure)


if __name__ == "__main__":
    main()
