"""Draw where the published algorithm of the sentence regularizer gets its accuracy, from the results of the full run.

python examples/papers/yogatama_smith_2014.py --json yogatama.json
python examples/papers/truncation.py yogatama.json truncation.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

PATH = ": the published algorithm by iterations"


def paths(content: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The table rows of each data set; the last row is the optimum."""
    tables = {name.split(PATH)[0]: table for name, table in content["tables"].items() if PATH in name}
    return {
        pair: [dict(zip(table["header"], row, strict=True)) for row in table["rows"]] for pair, table in tables.items()
    }


def draw(figure: Any, found: dict[str, list[dict[str, Any]]]) -> None:
    """Plot test accuracy and distance from the optimum by iterations."""
    panels = figure.subplots(1, 2)
    for number, (pair, rows) in enumerate(found.items()):
        *steps, optimum = rows
        counts, end = [row["iterations"] for row in steps], 2.2 * steps[-1]["iterations"]
        for axes, key in zip(panels, ("test accuracy", "above the optimum"), strict=True):
            axes.plot(counts, [row[key] for row in steps], marker="o", markersize=4, color=f"C{number}", label=pair)
        panels[0].plot([end], [optimum["test accuracy"]], marker="*", markersize=11, color=f"C{number}")
    titles = ("test accuracy in percent (star: optimum)", "objective above the optimum, relative")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_xscale("log")
        axes.set_xlabel("iterations")
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
    panels[1].set_yscale("log")
    panels[0].legend(fontsize="small")
    figure.set_size_inches(9, 4)


def main() -> None:
    """Read the results and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="the JSON file written by yogatama_smith_2014.py")
    parser.add_argument("figure", type=Path, help="the file of the figure")
    given = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(layout="constrained")
    draw(figure, paths(json.loads(given.results.read_text(encoding="utf-8"))))
    figure.savefig(given.figure, dpi=90)


if __name__ == "__main__":
    main()
