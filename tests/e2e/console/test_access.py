"""Pages for everyone: by keyboard alone, for screen readers, in light and dark, 360 px wide."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from tests.e2e.console.hands import DESK, TELEPHONE, Seat
from tests.support.live import Live

pytestmark = pytest.mark.asyncio(loop_scope="session")

LONGEST_SEARCH = "n" * 128
PAGES = (
    *("/", "/customers", "/wires", "/subscriptions", "/events", "/differences", "/reconciliation"),
    *("/commands", "/saga-steps", "/dead-letters", "/feeds", "/restores", "/keys", "/operators"),
    *("/audit", "/keys/create", "/search?q=none", f"/search?q={LONGEST_SEARCH}"),
)
FINDINGS = (Path(__file__).parent / "findings.js").read_text()
"""A function that returns what of a page is not as it must be, each with a sentence."""
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
"""Styles of a page alone depend on them, and on the width."""
MOST_TABS = 120


async def test_every_page_has_labels_landmarks_and_contrast_and_fits_a_telephone(
    admin: Seat, live: Live
) -> None:
    made, page = await live.onboarded(), admin.page

    found, wider = {}, {}
    for path in (*PAGES, f"/customers/{made['business']['customer_id']}"):
        assert await admin.opened(path) == 200, path
        for colours in COLOURS:
            await page.emulate_media(color_scheme=colours)
            if wrong := await page.evaluate(FINDINGS):
                found[path, colours] = wrong
        await page.set_viewport_size(TELEPHONE)
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > TELEPHONE["width"]:
            wider[path] = width
        await page.set_viewport_size(DESK)
    await page.emulate_media(color_scheme="light")

    assert (found, wider) == ({}, {})


async def tab_to(seat: Seat, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(MOST_TABS):
        await seat.page.keyboard.press("Tab")
        if await seat.page.evaluate("s => document.activeElement.matches(s)", selector):
            outline = await seat.page.evaluate(
                "getComputedStyle(document.activeElement).outlineStyle"
            )
            assert outline != "none", f"the focus on {selector} is not seen"
            return
    raise AssertionError(f"{selector} is not reached")


async def test_the_focus_stays_where_it_is_while_the_overview_renews_itself(admin: Seat) -> None:
    await admin.opened("/")
    await admin.page.locator("#wide-queues").focus()
    before = await admin.page.locator("#live").element_handle()
    assert before is not None

    await admin.page.evaluate(
        "htmx.ajax('GET', '/?part=live&left=9', {target: '#live', swap: 'outerHTML'})"
    )
    await admin.page.wait_for_function("before => !before.isConnected", arg=before)
    await admin.page.wait_for_function("document.activeElement.id === 'wide-queues'")


async def test_the_menu_of_pages_is_reached_where_it_is_shown(admin: Seat) -> None:
    """On a telephone; elsewhere the pages themselves are shown, and there is no menu to be focused."""
    await admin.opened("/")
    reached = {}

    for width, viewport in (("desk", DESK), ("telephone", TELEPHONE)):
        await admin.page.set_viewport_size(viewport)
        await admin.page.locator("#log-out").focus()
        await admin.page.keyboard.press("Tab")
        reached[width] = await admin.page.evaluate("document.activeElement.id")
    await admin.page.keyboard.press("Space")
    await admin.page.locator("#nav-overview").wait_for()
    await admin.page.set_viewport_size(DESK)

    assert reached == {"desk": "nav-overview", "telephone": "menu"}


async def test_a_key_is_rotated_by_keyboard_alone(admin: Seat, live: Live) -> None:
    key, page = await live.stack.new_key("partner", "--tenant", "typed"), admin.page
    await admin.opened(f"/keys/{key.subscription_key}")

    await tab_to(admin, ".skip")
    await page.keyboard.press("Enter")
    await tab_to(admin, "#action-rotate")
    await page.keyboard.press("Enter")
    await page.locator("#effect").wait_for()
    await tab_to(admin, "#field-reason")
    await page.keyboard.type("Typed, without a mouse.")
    await tab_to(admin, "#do")
    await page.keyboard.press("Enter")
    await page.locator("#go-on").wait_for()

    assert await admin.fact("Secret") not in {"", key.secret}
