"""Log-in at the console, as an operator does it in a browser."""

from __future__ import annotations

import pyotp
from playwright.async_api import Page


async def log_in(page: Page, url: str, name: str, password: str, code: str = "") -> None:
    """Type all three and send them; the page then says whether they are right."""
    await page.goto(f"{url}/login")
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_label("Code", exact=True).fill(code)
    await page.get_by_role("button", name="Log in").click()


async def enrol(page: Page, password: str) -> pyotp.TOTP:
    """After the log-in with a one-time password: choose a password and enrol an authenticator, which is answered."""
    await page.get_by_label("New password").fill(password)
    await page.get_by_label("The same again").fill(password)
    await page.get_by_role("button", name="Go on").click()
    authenticator = pyotp.parse_uri(await page.locator("#uri").inner_text())
    assert isinstance(authenticator, pyotp.TOTP)
    await page.get_by_label("Code", exact=True).fill(authenticator.now())
    await page.get_by_role("button", name="Confirm").click()
    await page.locator("#log-out").wait_for()
    return authenticator
