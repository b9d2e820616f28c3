"""The reference at `/docs` of the gateway, in the browser of the console's tests."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route

from libs.specs.reference.operations import Reference
from tests.e2e.console.hands import DESK, PAGE_SECONDS, TELEPHONE, watch
from tests.support.api import Api
from tests.support.documents import openapi_document
from tests.support.live import Deployment, Live
from tests.support.pace import pace

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def window(deployment: Deployment, browser: Browser) -> AsyncIterator[tuple[Page, list[str]]]:
    """One for all: a process of Chromium for each test would read the pages' scripts anew. With what went wrong."""
    wrong: list[str] = []
    base_url = deployment.stack.base_url
    context = await browser.new_context(base_url=base_url)
    context.set_default_timeout(1000 * PAGE_SECONDS * pace())
    watch(context, base_url, wrong)
    yield await context.new_page(), wrong
    await context.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(window: tuple[Page, list[str]]) -> AsyncIterator[Page]:
    """Empty, without anything that another test left, and checked afterwards: nothing happened that the pages' policy
    forbids.
    """
    page, wrong = window
    yield page
    await page.unroute_all(behavior="wait")
    await page.evaluate("localStorage.clear(); sessionStorage.clear()")
    await page.goto("about:blank")
    await page.set_viewport_size(DESK)
    assert wrong == []


async def use(page: Page, api: Api, secret: str | None = None) -> None:
    """Type the key, as an integrator does once for a page."""
    await page.click("#open-key")
    await page.fill("#subscription-key", api.key.subscription_key)
    await page.fill("#secret", secret or api.key.secret)
    await page.click("#use-key")


async def tried(page: Page, operation_id: str) -> str:
    """Send the form of an operation; what came of it."""
    form = page.locator(f".samples[data-operation={operation_id}] form.try")
    await form.get_by_role("button", name="Sign and send").click()
    await form.locator(".outcome .answer").wait_for()
    return await form.locator(".outcome").inner_text()


async def test_a_call_with_chosen_values_is_signed_in_the_browser_and_shows_what_was_signed(
    page: Page, live: Live
) -> None:
    await page.goto("/docs/customers#listCustomers")
    await use(page, live.partner)
    await page.fill("#listCustomers-limit", "1")
    await page.get_by_label("status").first.select_option("pending_review")

    shown = await tried(page, "listCustomers")

    assert "Answer 200" in shown
    signed = re.search(r"^GET\n/partner/reseller/customers\?(.*)\n", shown, re.MULTILINE)
    assert signed is not None
    assert parse_qsl(signed[1]) == [("limit", "1"), ("status", "pending_review")]
    stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    assert live.partner.key.secret not in await page.evaluate(stored)


async def test_a_query_is_signed_as_the_browser_sends_it(page: Page, live: Live) -> None:
    await page.goto("/docs/events#listPartnerEvents")
    await use(page, live.partner)
    await page.fill("#listPartnerEvents-after", "it's & more")

    shown = await tried(page, "listPartnerEvents")

    assert "GET\n/partner/reseller/events?after=it%27s%20%26%20more\n" in shown
    assert "Answer 401" not in shown


async def test_of_a_refused_call_the_first_difference_is_marked_and_without_one_the_secret_is_wrong(
    page: Page, live: Live
) -> None:
    await page.goto("/docs/customers#listCustomers")
    await use(page, live.partner, secret="not the secret of this key")

    shown = await tried(page, "listCustomers")

    assert "Answer 401" in shown
    assert "invalid_signature" in shown
    assert "it is the secret that is not this key's" in shown

    await use(page, live.partner)
    await page.fill("#listCustomers-limit", "1")
    other = f"{live.stack.base_url}/partner/reseller/customers?limit=2"
    await page.route("**/customers?limit=1", lambda route: route.continue_(url=other))

    shown = await tried_anew(page, "listCustomers")

    assert "Answer 401" in shown
    assert await page.locator(".compared mark").all_inner_texts() == ["1", "2"]


async def test_what_was_not_answered_is_sent_again_under_its_key(page: Page, live: Live) -> None:
    keys: list[str] = []
    answers: list[tuple[int, dict[str, Any]]] = [
        (502, {}),
        (409, {"code": "idempotency_in_progress"}),
        (404, {"message": "a proxy's"}),
        (200, {"data": {}}),
        (200, {"data": {}}),
    ]

    async def answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        status, body = answers[len(keys) - 1]
        await route.fulfill(status=status, json=body)

    await page.goto("/docs/wires#sendWire")
    await use(page, live.partner)
    await page.route("**/customer/wire", answer)

    shown = [await tried_anew(page, "sendWire") for _ in answers]

    assert ["Answer 502" in shown[0], "Answer 200" in shown[3]] == [True, True]
    assert keys[0] == keys[1] == keys[2] == keys[3] != keys[4]


async def tried_anew(page: Page, operation_id: str) -> str:
    """As `tried`, without what came of the send before."""
    outcome = page.locator(f".samples[data-operation={operation_id}] form.try .outcome")
    await outcome.evaluate("shown => shown.replaceChildren()")
    return await tried(page, operation_id)


async def test_the_example_for_browsers_reads(page: Page, live: Live) -> None:
    await page.goto("/docs")
    reference = Reference(openapi_document())
    (code,) = (
        sample.code
        for resource in reference.resources
        for operation in resource.operations
        for call in operation.calls
        for sample in call.samples
        if call.operation_id == "listPartnerAccounts" and sample.name == "Browser"
    )
    key = {
        "url": live.stack.base_url,
        "key": live.partner.key.subscription_key,
        "secret": live.partner.key.secret,
    }
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))

    await page.evaluate(f"window.bankside = {json.dumps(key)}; (async () => {{ {code} }})()")

    assert said[-1].startswith("200 {")


async def test_search_leads_to_an_operation_by_the_keyboard(page: Page) -> None:
    await page.goto("/docs")
    await page.keyboard.press("/")
    await page.keyboard.type("send money")
    await page.locator("#found li").first.wait_for()

    await page.keyboard.press("Enter")

    await page.wait_for_url("**/docs/wires#sendWire")
    assert await page.locator("#sendWire").is_visible()


async def test_the_id_of_an_operation_alone_leads_to_it(page: Page) -> None:
    await page.goto("/docs#sendWire")

    await page.wait_for_url("**/docs/wires#sendWire")


async def test_the_language_of_examples_is_kept(page: Page) -> None:
    await page.goto("/docs/wires")
    await page.get_by_role("tab", name="Node").first.click()

    await page.goto("/docs/accounts")

    shown = page.locator(".sample:visible")
    assert {await each.get_attribute("data-language") for each in await shown.all()} == {"Node"}


async def test_no_page_is_wider_than_a_telephone(page: Page) -> None:
    await page.set_viewport_size(TELEPHONE)

    await page.goto("/docs")
    linked = await page.locator(".side a").evaluate_all("all => all.map((a) => a.pathname)")
    paths = [path for path in linked if not path.endswith(".json")]
    assert "/docs/wires" in paths

    for path in paths:
        await page.goto(path)
        assert await page.evaluate("document.documentElement.scrollWidth") <= TELEPHONE["width"], (
            path
        )
