"""Text that callers choose is shown as text: in no field of theirs can it become markup or a script."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.e2e.console.hands import DESK, Seat
from tests.e2e.console.happenings import DISPATCHER, refused_text
from tests.e2e.wires.hands import new_sender
from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import application, new_key, person
from tests.support.receivers import receiver, replies
from tests.support.subscribers import subscribed

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"{{7*7}}"
SHORT = "<b onclick=alert(3)>x</b>"
AS_TEXT = ("onerror=alert(1)", "<b onclick")
INJECTED = (
    "main img, main script, main b, main iframe, main [onclick], main [onerror], main [style]"
)


async def is_text(seat: Seat, path: str, *shown: str) -> None:
    """The page has the text as text, and no element of it."""
    assert await seat.opened(path) in {200, 401, 404, 422}, path
    page = seat.page
    assert await page.locator(INJECTED).count() == 0, path
    assert await page.locator("script").count() == 2, path  # htmx.min.js, forms.js
    visible = await page.locator("body").evaluate(
        "b => b.innerText + [...b.querySelectorAll('input, textarea')].map(e => e.value).join('\\n')"
    )
    for text in shown:
        assert text in visible, (path, text)


async def test_what_callers_write_is_shown_as_text(admin: Seat, live: Live) -> None:
    persons = [person(first_name=SHORT, last_name="Marsh")]
    body = application(persons=persons)
    body["business"] |= {"business_name": HOSTILE[:100], "dba": SHORT}
    made = await live.partner.post(CUSTOMERS, body)
    sender = await new_sender(live, "500.00")
    wire = await sender.send("3.00", new_key(), purpose=HOSTILE[:60])

    assert (made.status, wire.status // 100) == (200, 2), (made.body, wire.body)
    customer_id = made.data["business"]["customer_id"]
    await is_text(admin, f"/customers/{customer_id}", AS_TEXT[0], AS_TEXT[1])
    await is_text(admin, "/customers", AS_TEXT[0])
    await is_text(admin, f"/wires/{wire.data['transaction_id']}", AS_TEXT[0])
    # Text that turns the direction of writing around stays so within its own element.
    values = admin.page.locator("main dd > *")
    ways = await values.evaluate_all("found => found.map(e => getComputedStyle(e).unicodeBidi)")
    assert {*ways} == {"isolate"}
    await is_text(admin, "/wires")
    await is_text(admin, "/events")


async def test_what_receivers_answer_and_operators_type_is_shown_as_text(
    admin: Seat, live: Live
) -> None:
    partner = await live.of_tenant("hostile")
    async with (
        receiver(replies(200, HOSTILE.encode())) as endpoint,
        subscribed(partner, endpoint) as subscriber,
    ):
        await live.onboarded(api=partner)
        deliveries = await subscriber.is_over(ONBOARDED.total())
        one = f"/subscriptions/{subscriber.subscription_id}"
        await is_text(admin, one)
        await is_text(admin, f"{one}/deliveries/{deliveries[0]['delivery_id']}", HOSTILE)
    key = (await live.stack.new_key("partner", "--tenant", "quoted")).subscription_key

    await admin.opened(f"/keys/{key}")
    await admin.acts("Change networks", HOSTILE, add="<script>alert(5)</script>")
    await admin.page.locator(".problem").wait_for()
    assert await admin.page.locator(INJECTED).count() == 0
    await admin.opened(f"/keys/{key}")
    await admin.acts("Rotate", HOSTILE)
    await admin.page.locator("#go-on").wait_for()
    await is_text(admin, "/audit?service=gateway", AS_TEXT[0])
    for path in (f"/search?q={quote(HOSTILE)}", f"/wires?tenant={quote(HOSTILE)}"):
        await is_text(admin, path)
    await is_text(admin, f"/wires/{quote(HOSTILE, safe='')}")
    await is_text(admin, f"/wires?after={quote(HOSTILE)}&order={quote(HOSTILE)}")


async def test_a_message_of_the_broker_is_shown_as_text(admin: Seat, live: Live) -> None:
    await refused_text(live, HOSTILE)
    path = f"/dead-letters?service={DISPATCHER}"
    await is_text(admin, path)
    letter = admin.page.locator("#table-dead-letters tbody tr", has_text=AS_TEXT[0]).first
    href = await letter.locator("td a").first.get_attribute("href")
    assert href is not None
    await is_text(admin, href, AS_TEXT[0])

    await admin.page.set_viewport_size({"width": 780, "height": 800})
    await admin.opened(path)
    width = await admin.page.evaluate("document.documentElement.scrollWidth")
    discard = await letter.get_by_role("link", name="Discard").bounding_box()
    await admin.page.set_viewport_size(DESK)
    assert width == 780
    assert discard is not None
    assert discard["x"] + discard["width"] < 780
