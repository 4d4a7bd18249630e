"""Open every page of a built site in Chromium, at the width of a desktop and of a phone.

``python -m docs.building.look site`` finds pages that overflow, pictures and formulas that do not
show, errors of scripts, and a search that finds nothing. With a folder after it, pictures of all
pages but the reference's are written there, each wide and narrow, light and dark.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"desktop": 1280, "phone": 390}
SEARCHED = ("raking", "plot_margins", "overlap")  # a word, a file of the gallery, a page
FAULTS = """() => {
  const wide = document.documentElement, shown = [];
  if (wide.scrollWidth > wide.clientWidth + 1) shown.push(
    `is ${wide.scrollWidth} wide and has ${wide.clientWidth}`);
  for (const image of document.images) if (image.complete && !image.naturalWidth)
    shown.push(`does not show ${image.getAttribute("src")}`);
  for (const wrong of document.querySelectorAll("mjx-merror, .problematic, .system-message"))
    shown.push(`has the error ${wrong.textContent}`);
  return shown;
}"""


def look(site: Path, pictures: Path | None = None) -> list[str]:
    """Return what is wrong with the pages as a browser shows them, a line for each."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        sys.exit(f"None of {', '.join(BROWSERS)} is installed.")
    pages = [page for page in sorted(site.rglob("*.html")) if "_static" not in page.parts]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        found = [*faults(chromium, site, pages, pictures), *search_faults(chromium, site)]
        chromium.close()
    return found


def faults(chromium: Any, site: Path, pages: list[Path], pictures: Path | None) -> Iterator[str]:
    """Yield the faults of each page at each width, and take its pictures."""
    for name, width in WIDTHS.items():
        window = chromium.new_page(viewport={"width": width, "height": 800})
        errors: list[str] = []
        window.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
        for page in pages:
            here = page.relative_to(site)
            window.goto(page.as_uri(), wait_until="load")
            window.wait_for_function(
                "() => [...document.images].every(i => i.complete || i.loading === 'lazy')"
            )
            yield from (f"{here} {fault} ({name})" for fault in window.evaluate(FAULTS))
            yield from (f"{here} fails: {error} ({name})" for error in errors)
            errors.clear()
            if pictures is not None and "generated" not in here.parts:
                take(window, pictures / f"{'-'.join(here.with_suffix('').parts)}-{name}")
        window.close()


def take(window: Any, stem: Path) -> None:
    """Write a picture of the whole page in light and in dark colours."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    for mode in ("light", "dark"):
        window.evaluate(f"document.documentElement.dataset.theme = '{mode}'")
        window.screenshot(path=f"{stem}-{mode}.png", full_page=True)


def search_faults(chromium: Any, site: Path) -> Iterator[str]:
    """Yield the words that the site's search does not find."""
    window = chromium.new_page()
    for word in SEARCHED:
        window.goto(f"{(site / 'search.html').as_uri()}?q={word}")
        try:
            window.wait_for_selector("#search-results li a", timeout=10_000)
        except Exception as error:
            yield f"search.html does not find '{word}': {error}"
    window.close()


if __name__ == "__main__":
    wrong = look(Path(sys.argv[1]).resolve(), *map(Path, sys.argv[2:3]))
    print("\n".join(wrong) or "Every page shows, wide and narrow")
    sys.exit(bool(wrong))
