"""Draw the pictures of docs/plots.md with the lines of that page: python docs/images/make.py.

The Python blocks of the page run one after the other. The picture that follows a block is the figure of its ``ax``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from PIL import Image

PAGE = Path(__file__).parent.parent / "plots.md"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\n+!\[[^\]]*\]\((?P<image>[^)]*)\))?", re.DOTALL | re.MULTILINE)
DPI, COLOURS = 110, 200


def save(figure: Any, path: Path) -> None:
    """Write the picture with few colours, which makes it small, and close it."""
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS)
    small.save(path, optimize=True)


def draw(folder: Path = PAGE.parent) -> list[Path]:
    """Run the page and save its pictures below the folder; their paths."""
    names: dict[str, Any] = {"__name__": "plots_page"}
    drawn = []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        exec(compile(block["code"], str(PAGE), "exec"), names)
        if block["image"]:
            path = folder / block["image"]
            path.parent.mkdir(parents=True, exist_ok=True)
            save(names["ax"].figure, path)
            drawn.append(path)
    return drawn


if __name__ == "__main__":
    for path in draw():
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
