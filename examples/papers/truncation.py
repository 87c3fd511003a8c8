"""Where the accuracy of the sentence regularizer comes from: the published algorithm beside the optimum.

    python examples/papers/truncation.py --write-docs

Every model of yogatama_smith_2014.py with sentences, and four models beside it: the certified optimum with the same
strengths, the optimum with strengths chosen for itself, an early stop chosen on the development documents, and a ridge
weighted by the number of copies of each word. The first variant (all words, tokens, split 0) shares its fits with
yogatama_smith_2014.py; the others change one thing each: the vocabulary, the copies, or the split.
"""

from __future__ import annotations

import itertools
from typing import Any

from reporting import Report, options
from sentence_cells import MAIN, run_variant
from text_data import MADE, PAIRS, REVIEWS
from text_models import EARLY, PUBLISHED, SAME, TUNED, WEIGHTED

from cvxstructreg.metrics import mcnemar_test

#: Every variant changes one thing of the first.
VARIANTS = {
    "all words, tokens": MAIN,
    "frequent words": MAIN | {"vocabulary": "frequent"},
    "types": MAIN | {"copies": "types"},
    "another split": MAIN | {"split": 1},
}
SETS = (*PAIRS, *REVIEWS)
PARTS = tuple(f"{name}, {variant}" for variant, name in itertools.product(VARIANTS, SETS))
PROTOCOL = (
    "Data, tuning and the published algorithm are as in yogatama_smith_2014.py. All models are tuned on the "
    "development documents and fitted again on all training documents.",
    "Optimum, same strengths: the optimum with the strengths of the published algorithm, by weighted ridges "
    "(sentence_optimum.py) until a lower bound proves a relative gap of 1e-4, in at most 300 steps. "
    "Optimum, own strengths: powers of ten chosen on the development documents, on a grid that grows until no edge is "
    "chosen. Ridge by sentences: lam sum_j N_j w_j^2, its strength chosen in the same way.",
    "Early stop: as the published algorithm, but the number of iterations (1, 2, 3, 5, 10, 20, 30, 50, 100) is chosen "
    "on the development documents, too.",
    "p: exact McNemar test on the test documents against the published algorithm. The relative gap is that to a lower "
    "bound of the optimum from a dual point; the tests compare bound and optimum with those of the library.",
    "Variants: all words or frequent words (letters only, in at least 2 training documents); a copy for every token or "
    "for every type of a sentence; another draw of development documents (for reviews, also of test documents).",
)
DIFFERENCES = ("See yogatama_smith_2014.md. The optimum, the early stop and the weighted ridge are not in the paper.",)
BESIDE = (SAME, TUNED, EARLY, WEIGHTED)


def rows_of(label: str, found: dict[str, Any]) -> list[list[Any]]:
    """The published algorithm and the models beside it."""
    ours = found[PUBLISHED]
    right = [character == "1" for character in ours["right"]]
    rows: list[list[Any]] = []
    for model in (PUBLISHED, *(model for model in BESIDE if model in found)):
        one = found[model]
        theirs = [character == "1" for character in one["right"]]
        p = "-" if model == PUBLISHED else f"{mcnemar_test([True] * len(right), right, theirs).p_value:.2g}"
        values = [*one["point"].values(), *(one[key] for key in ("rho", "iterations") if key in one)]
        chosen = ", ".join(f"{value:g}" for value in values)
        name = "published" if model == PUBLISHED else model
        rows.append([label if model == PUBLISHED else "", name, one["accuracy"], p, one["size"], f"{one['gap']:.0e}"])
        rows[-1].append(chosen)
    return rows


def add_tables(results: dict[str, Any], report: Report) -> None:
    """One table for each variant, the counts of differences, and the iterations of the first variant."""
    header = ["", "model", "accuracy", "p", "size in percent", "relative gap", "lam, lam_1, rho, iterations"]
    for variant in VARIANTS:
        found = {part.split(",")[0]: one for part, one in results.items() if part.partition(", ")[2] == variant}
        if found:
            report.add(variant, header, [row for name, one in found.items() for row in rows_of(name, one)])
    report.add("Summary", ["against", "published better", "p < 0.05", "equal", "worse", "p < 0.05"], summary(results))
    main = {part.split(",")[0]: one for part, one in results.items() if part.partition(", ")[2] == next(iter(VARIANTS))}
    rows = []
    for name, one in main.items():
        for step in one["path"]:
            first = step is one["path"][0]
            rows.append([name if first else "", *(step[key] for key in ("iterations", "test accuracy", "features"))])
            rows[-1].append(f"{step['above the optimum']:.1e}")
        rows.append(["", "optimum", one[SAME]["accuracy"], None, "0"])
    report.add("Iterations", ["", "iterations", "test accuracy", "words", "above the optimum"], rows)


def summary(results: dict[str, Any]) -> list[list[Any]]:
    """In how many data sets and variants the published algorithm is better than each other model."""
    rows = []
    for model in BESIDE:
        counts = [0] * 5
        for one in (one for one in results.values() if model in one):
            right, other = ([c == "1" for c in one[key]["right"]] for key in (PUBLISHED, model))
            p = mcnemar_test([True] * len(right), right, other).p_value
            place = 0 if sum(right) > sum(other) else 2 if sum(right) == sum(other) else 3
            counts[place] += 1
            if place != 2 and p < 0.05:
                counts[place + 1] += 1
        rows.append([model, *counts])
    return rows


def findings(results: dict[str, Any]) -> list[str]:
    """Where the published algorithm is better and worse than each other model, with p < 0.05."""
    lines = []
    for model in BESIDE:
        better, worse, other = [], [], 0
        for part, one in ((part, one) for part, one in results.items() if model in one):
            right, theirs = ([c == "1" for c in one[key]["right"]] for key in (PUBLISHED, model))
            p, gain = mcnemar_test([True] * len(right), right, theirs).p_value, sum(right) - sum(theirs)
            text = f"{part} ({100.0 * gain / len(right):+.1f} points)"
            other += p >= 0.05
            (better if gain > 0 else worse).extend([text] if p < 0.05 else [])
        if not any(model in one for one in results.values()):
            lines.append(f"{model.capitalize()}: not yet run.")
            continue
        lines.append(
            f"Against {model}, the published algorithm is better on {'; '.join(better) or 'none'}; worse on "
            f"{'; '.join(worse) or 'none'}; no clear difference on {other} others."
        )
    ended = sum(one[PUBLISHED]["stopped by the change of w"] for one in results.values())
    lines.append(
        f"The published algorithm ends by the change of w on {ended} of {len(results)}, on the others after 100."
    )
    optima = max(one[model]["gap"] for one in results.values() for model in (SAME, TUNED) if model in one)
    gaps = [one[PUBLISHED]["gap"] for one in results.values()]
    lines.append(
        f"The relative gaps of the optima are at most {optima:.1e}, those of the published algorithm {min(gaps):.0e} "
        f"to {max(gaps):.0e}."
    )
    lines += [f"The variant {name!r} is not yet run." for name in VARIANTS if not any(name in part for part in results)]
    return lines


def main() -> None:
    """Run the variants and print the tables."""
    given = options(__doc__, PARTS)
    report = Report("Truncation of the sentence regularizer", PROTOCOL, DIFFERENCES, given.quick)
    parts = (f"{MADE}, {next(iter(VARIANTS))}",) if given.quick else given.parts
    results = {}
    for part in parts:
        name, _, variant = part.partition(", ")
        chosen = {"name": name, "data_home": given.data_home} | VARIANTS[variant]
        results[part] = run_variant(chosen, (TUNED, WEIGHTED), given)
    results = {part: found for part, found in results.items() if found}
    given.parts = tuple(results)
    add_tables(results, report)
    if not given.quick:
        report.found(findings(results))
    report.finish(given, lambda figure: draw(figure, results), "truncation")


def draw(figure: Any, results: dict[str, Any]) -> None:
    """Plot test accuracy and distance from the optimum by iterations, for the first variant."""
    panels = figure.subplots(1, 2)
    results = {part: one for part, one in results.items() if part.partition(", ")[2] == next(iter(VARIANTS))}
    for number, (part, one) in enumerate(results.items()):
        steps, colour = one["path"], f"C{number % 10}"
        counts = [row["iterations"] for row in steps]
        for axes, key in zip(panels, ("test accuracy", "above the optimum"), strict=True):
            axes.plot(counts, [row[key] for row in steps], marker="o", markersize=4, color=colour, label=part)
        panels[0].plot([2.2 * counts[-1]], [one[SAME]["accuracy"]], marker="*", markersize=11, color=colour)
    titles = ("test accuracy in percent (star: optimum, same strengths)", "objective above the optimum, relative")
    for axes, title in zip(panels, titles, strict=True):
        axes.set_xscale("log")
        axes.set_xlabel("iterations")
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
    panels[1].set_yscale("log")
    panels[0].legend(fontsize="x-small")
    figure.set_size_inches(9, 4)


if __name__ == "__main__":
    main()
