"""A browser without a window, which tests and screenshots drive."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator

from playwright.async_api import Browser, async_playwright


@contextlib.asynccontextmanager
async def chromium(program: str) -> AsyncIterator[Browser]:
    """A browser for the body.

    Args:
        program: of Chromium. As root it does without its sandbox, which cannot be made for root.
    """
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(
            executable_path=program,
            chromium_sandbox=os.geteuid() != 0,
            args=["--disable-gpu", "--disable-dev-shm-usage"],
        )
        try:
            yield browser
        finally:
            await browser.close()
