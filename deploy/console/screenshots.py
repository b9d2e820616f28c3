"""Pictures of the console's pages, and of the reference: `make screenshots`, on a running stack after `make demo`.

Each page in light, dark and 360 px narrow, as PNG files in `pictures`. An operator is made for it, who logs in for the
first time, and is revoked at the end.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, Error, Page

from deploy.console.chromium import chromium
from deploy.console.logging_in import enrol, log_in
from deploy.local.chromium import find_chromium
from deploy.local.state import LocalState
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.errors import BanksideError
from libs.contracts.operating import operators as o

ROOT = Path(__file__).resolve().parents[2]
PICTURES = Path(__file__).parent / "pictures"
REASON = "make screenshots"
PAGE_MILLISECONDS = 20_000
TALLEST = 1600


@dataclass(frozen=True)
class Look:
    name: str
    width: int
    height: int
    colours: Literal["light", "dark"]


LOOKS = (
    Look("light", 1280, 800, "light"),
    Look("dark", 1280, 800, "dark"),
    Look("narrow", 360, 740, "light"),
)
LISTS = (
    *("customers", "wires", "subscriptions", "events", "differences", "reconciliation"),
    *("commands", "saga-steps", "dead-letters", "feeds", "restores", "keys", "operators", "audit"),
)
ITEMS = {
    "customer": "customers",
    "wire": "wires",
    "subscription": "subscriptions",
    "event": "events",
    "key": "keys",
}
"""The newest item of each list."""


async def take(url: str, gateway_url: str, name: str, password: str, program: str) -> list[Path]:
    """The pictures, as they are written."""
    PICTURES.mkdir(exist_ok=True)
    async with chromium(program) as browser:
        page = await _new_page(browser)
        await page.goto(f"{url}/login")
        taken = await _pictures(page, "login")
        await log_in(page, url, name, password)
        await enrol(page, secrets.token_urlsafe(18))
        paths = {"overview": "/", "create-key": "/keys/create"} | {
            each: f"/{each}" for each in LISTS
        }
        for item, of_list in ITEMS.items():
            await page.goto(f"{url}/{of_list}")
            first = page.locator(f"#table-{of_list} tbody tr:first-child td:first-child a")
            if await first.count():
                paths[item] = await first.get_attribute("href") or "/"
        for picture, path in paths.items():
            await page.goto(f"{url}{path}")
            taken += await _pictures(page, picture)
        await page.goto(f"{gateway_url}/docs/wires")
        return taken + await _pictures(page, "reference")


async def _new_page(browser: Browser) -> Page:
    context = await browser.new_context()
    context.set_default_timeout(PAGE_MILLISECONDS)
    return await context.new_page()


async def _pictures(page: Page, name: str) -> list[Path]:
    taken = []
    for look in LOOKS:
        await page.emulate_media(color_scheme=look.colours)
        await page.set_viewport_size({"width": look.width, "height": look.height})
        height = await page.evaluate("document.documentElement.scrollHeight")
        path = PICTURES / f"{name}-{look.name}.png"
        await page.screenshot(
            path=path,
            full_page=True,
            clip={
                "x": 0,
                "y": 0,
                "width": look.width,
                "height": min(max(height, look.height), TALLEST),
            },
        )
        taken.append(path)
    return taken


def main() -> int:
    known = LocalState(ROOT / ".local").read_json(LocalState(ROOT / ".local").credentials) or {}
    program, url = find_chromium(), known.get("console_url")
    if program is None:
        print("There is no Chromium.", file=sys.stderr)
        return 1
    if not isinstance(url, str):
        print("There is no stack yet: `make up`, then `make demo`.", file=sys.stderr)
        return 1
    name = f"pictures-{secrets.token_hex(4)}"
    try:
        made = ask(
            o.CREATE_OPERATOR,
            o.CreateOperator(name=name, role="admin", login=True, reason=REASON),
        )
        try:
            taken = asyncio.run(
                take(url, str(known["base_url"]), name, made.one_time_password or "", program)
            )
        finally:
            ask(o.REVOKE_OPERATOR, o.RevokeOperator(name=name, reason=REASON))
    except OperatorError as error:
        print(error, file=sys.stderr)
        return 1
    except BanksideError as error:
        print(f"{error.detail} ({error.code})", file=sys.stderr)
        return 1
    except Error as error:
        print(
            f"The console did not show what was expected: {error.message.splitlines()[0]}",
            file=sys.stderr,
        )
        return 1
    print(f"{len(taken)} pictures are in {PICTURES.relative_to(ROOT)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
