"""Check a built site: links and anchors lead somewhere, nothing is loaded from the network.

``python -m docs.building.check_site site``
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href")}


class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links, loads and anchors."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        is_canonical = tag == "link" and found.get("rel") in ("canonical", "next", "prev")
        self.loads += [
            found[name] for of, name in LOADED if of == tag and name in found and not is_canonical
        ]


def problems(site: Path) -> list[str]:
    """Return what is wrong with the site, a line for each."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        here = path.relative_to(site)
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme in ("data", "mailto") or link.startswith("about:"):
                continue
            if parts.scheme or parts.netloc:
                if link in page.loads:
                    found.append(f"{here} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{here}: dead link {link}")
            elif target in pages and parts.fragment:
                anchors = pages[target].anchors
                found += [f"{here}: no anchor {link}"] * (unquote(parts.fragment) not in anchors)
    return found


if __name__ == "__main__":
    site = Path(sys.argv[1]).resolve()
    wrong = problems(site)
    print("\n".join(wrong) or f"{len(list(site.rglob('*.html')))} pages, no dead link")
    sys.exit(bool(wrong))
