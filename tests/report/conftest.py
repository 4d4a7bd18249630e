"""One browser for all tests of the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium, wherever the system has it."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(NAMES)} is on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Watched:
    """What a page did that it should not do."""

    def __init__(self, page) -> None:
        self.messages: list[str] = []
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)

    def _dismiss(self, dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()


@pytest.fixture
def opened(browser, tmp_path: Path) -> Callable:
    """A context in which a page is open in the browser; at its end, nothing must have happened."""

    @contextmanager
    def open_page(text: str, *, width: int = 1100, quiet: bool = True, **options) -> Iterator:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        page = browser.new_page(viewport={"width": width, "height": 800}, **options)
        try:
            watched = Watched(page)
            page.goto(path.as_uri())
            if "data-chart=" in text:
                page.wait_for_selector("html.drawn", state="attached", timeout=20_000)
            yield page
            assert watched.dialogs == []
            if quiet:
                assert watched.requests == [path.as_uri()]
                assert watched.messages == []
        finally:
            page.close()

    return open_page
