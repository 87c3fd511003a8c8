"""Check the built pages: ``python docs/check_site.py docs/_build/html``. Every finding is printed; one is a failure.

- Links between the pages lead to pages and sections that exist.
- Images have a text for readers who cannot see them.
- Nothing is loaded from elsewhere: scripts, styles, fonts and images are local.
- Every public name is in the API reference, with an example, and the search finds it; attributes are as written.
- No cell of a notebook printed a warning.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
#: Attributes whose value the browser loads by itself.
LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("video", "src")}
LOADED_RELATIONS = {"stylesheet", "preload", "icon", "modulepreload"}


class Page(HTMLParser):
    """The links, sections, images and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.without_text: list[str] = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what the element refers to."""
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        self.loaded += [value for name, value in values.items() if (tag, name) in LOADED]
        if tag == "link" and LOADED_RELATIONS & set(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "img" and not re.search(r"\w{3}.*\w", values.get("alt", "").removesuffix(".png")):
            self.without_text.append(values.get("src", ""))


def findings(root: Path) -> Iterator[str]:
    """One line for each defect of the site in a folder."""
    pages = {path.resolve(): Page(path) for path in sorted(root.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue  # other sites: sphinx-build -b linkcheck
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                yield f"{name}: the link {target} leads nowhere"
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
                yield f"{name}: {target} has no such section"
        yield from (f"{name}: {target} is loaded from elsewhere" for target in page.loaded if urlsplit(target).netloc)
        yield from (f"{name}: the image {source} has no text" for source in page.without_text)
        if "output stderr" in page.text:
            yield f"{name}: a cell printed to stderr"
    yield from missing_names(root)


def missing_names(root: Path) -> Iterator[str]:
    """Public names that the reference or the search index does not have, or that have no example."""
    from public_names import public_names

    reference = "".join(path.read_text(encoding="utf-8") for path in (root / "api").glob("*.html"))
    index = (root / "searchindex.js").read_text(encoding="utf-8")
    for name, value in public_names().items():
        if f'id="{name}"' not in reference:
            yield f"api: {name} is not documented"
        is_error = isinstance(value, type) and issubclass(value, Warning | Exception)
        if callable(value) and not is_error and ">>>" not in (inspect.getdoc(value) or ""):
            yield f"api: {name} has no example"
        for attributes in attributes_of(inspect.getdoc(value) or ""):
            if isinstance(value, type) and f"<strong>{attributes}</strong>" not in reference:
                yield f"api: {name} does not show its attributes {attributes} as they are written"
        if f'"{name.rpartition(".")[2]}"' not in index and name.rpartition(".")[2].lower() not in index:
            yield f"search: {name} is not found"


def attributes_of(docstring: str) -> Iterator[str]:
    """The names in the section "Attributes" of a docstring, as they stand: ``objective_, certificate_``."""
    section = docstring.partition("\nAttributes\n----------\n")[2].partition("\n\n")[0]
    yield from (line.partition(" :")[0] for line in section.splitlines() if line[:1].strip())


def main() -> int:
    """Print all findings; the exit status is 1 if there are any."""
    root = Path(sys.argv[1])
    found = list(findings(root))
    print("\n".join([*found, f"{len(list(root.rglob('*.html')))} pages, {len(found)} findings"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
