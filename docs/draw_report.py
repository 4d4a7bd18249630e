"""Write the report shown in the docs, and take a screenshot of it: ``make figures``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from docs.survey import make_survey
from unskew import TreeWeights, diagnose

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1000


def draw_report(page: Path, picture: Path, browser: str) -> None:
    """Diagnose the weighted survey, write the page, and take a screenshot of its top."""
    from playwright.sync_api import sync_playwright

    sample, spending, people = make_survey()
    weighter = TreeWeights(min_samples_leaf=25, overlap="ignore")  # the report shows it
    weighter.fit(sample, spending, population=people)
    diagnose(sample, people, weighter).to_html(page)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        shown = chromium.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=1.3)
        shown.goto(page.resolve().as_uri())
        shown.wait_for_selector("html.drawn", state="attached")
        end = shown.locator("section[aria-labelledby=balance]").bounding_box()
        assert end is not None
        height = end["y"] + end["height"] + 20
        shown.screenshot(
            path=picture, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
        )
        chromium.close()


if __name__ == "__main__":
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        sys.exit(f"The screenshot needs a browser; found none of {', '.join(BROWSERS)}.")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "report.html"
        draw_report(target, IMAGES / "report.png", found)
