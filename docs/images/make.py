"""Draw the pictures of docs/plots.md and of docs/worked/images.md with the lines of these pages.

Run ``python docs/images/make.py``. The Python blocks of a page run one after the other. The picture after a block
is the figure of its ``ax``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image

DOCS = Path(__file__).parent.parent
PAGES = (DOCS / "plots.md", DOCS / "worked" / "images.md")
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+!\[[^\]]*\]\((?P<image>[^)]*)\))?", re.DOTALL | re.MULTILINE)
DPI, COLOURS = 110, 200


def save(figure: Any, path: Path) -> None:
    """Write the picture with few colours, which makes it small, and close it."""
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS)
    small.save(path, optimize=True)


def draw(folder: Path = DOCS) -> list[Path]:
    """Run the pages and save their pictures below the folder; their paths."""
    return [path for page in PAGES for path in drawn_by(page, folder)]


def drawn_by(page: Path, folder: Path) -> list[Path]:
    """Run one page and save its pictures; pages in a folder of docs refer to ../images."""
    names: dict[str, Any] = {"__name__": "page"}
    drawn = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        exec(compile(block["code"], str(page), "exec"), names)
        if block["image"]:
            path = folder / block["image"].removeprefix("../")
            path.parent.mkdir(parents=True, exist_ok=True)
            save(names["ax"].figure, path)
            drawn.append(path)
    return drawn


if __name__ == "__main__":
    for path in draw():
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
