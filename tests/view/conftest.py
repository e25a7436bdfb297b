"""One browser for all tests of pages: the Chromium of the system, without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, driven by playwright; TRANSECT_CHROMIUM names another one than the system's."""
    program = os.environ.get("TRANSECT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(
            "browser: no Chromium (apt-get install chromium-headless-shell, or set TRANSECT_CHROMIUM)"
        )
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.skip("browser: no playwright (pip install playwright)")
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=program)
        yield launched
        launched.close()


class Watched:
    """A page, and what a browser says that should not be: errors, warnings, requests that leave the file."""

    def __init__(self, browser: Browser, address: str, **options: Any) -> None:
        settings = {"viewport": {"width": 1100, "height": 800}, "offline": True, **options}
        self.context = browser.new_context(**settings)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)

    @property
    def elsewhere(self) -> list[str]:
        """Requests for anything but the page's own file and what is inside of it."""
        return [url for url in self.asked[1:] if not url.startswith("data:")]
