"""What operators do at the console, each from a list to its message, and what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Route

from libs.contracts.principal import Role
from tests.e2e.console.hands import Seat
from tests.e2e.console.happenings import DISPATCHER, dead_letter
from tests.e2e.wires.hands import Sender, new_sender
from tests.support.api import Answer, Key
from tests.support.live import CUSTOMERS, ONBOARDED, Live
from tests.support.people import new_key
from tests.support.receivers import receiver
from tests.support.subscribers import subscribed
from tests.support.waiting import eventually
from tests.support.waits import last_send_arrives

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE_POLL_SECONDS = 0.5
"""Between two looks at a page, each of which takes 0.1 s of processor time."""


async def audited(live: Live, service: str, action: str, name: str) -> Any:
    """The entry of what was done last."""
    rows = (await live.stack.command("audit", "export", service))["rows"]
    found = [row["entry"] for row in rows if row["entry"]["actor"] == f"operator:{name}"]
    return [entry for entry in found if entry["action"] == action][-1]


async def waiting_wire(live: Live) -> tuple[Sender, Answer]:
    """A wire over its customer's threshold, which waits until it is approved."""
    sender = await new_sender(live, "500.00")
    policy = f"{CUSTOMERS}/{sender.account.customer_id}/wire-policy"
    assert (await live.partner.call("PUT", policy, {"approval_threshold": 100})).status == 200
    return sender, await sender.send("120.00", new_key())


async def test_an_application_is_followed_to_its_account(admin: Seat, live: Live) -> None:
    made = await live.onboarded()
    customer_id, account_id = made["business"]["customer_id"], made["business"]["account_id"]
    page = admin.page

    await admin.opened("/customers")
    await page.get_by_label("Status").select_option("approved")
    await page.locator("#apply").click()
    await page.locator(f"#table-customers a[title='{customer_id}']").click()
    await page.locator("h1", has_text=customer_id).wait_for()

    assert await admin.fact("Status") == "approved"
    assert "open account" in (await admin.text("#part-steps + *")).replace("_", " ")
    assert account_id in await admin.text("#part-accounts + *")
    await admin.opened("/feeds")
    await page.get_by_label("Find by id").fill(account_id)
    await page.keyboard.press("Enter")
    await page.locator("main", has_text=customer_id).wait_for()


async def test_a_wire_over_the_threshold_is_approved_and_sent(admin: Seat, live: Live) -> None:
    sender, sent = await waiting_wire(live)
    transaction_id, request_id = sent.data["transaction_id"], sent.headers["X-Request-Id"]

    await admin.opened("/wires?state=pending_approval")
    await admin.page.locator(f"#table-wires a[title='{transaction_id}']").click()
    await admin.acts("Approve", "The invoice was checked.")

    assert await admin.message() == "The wire is approved."
    await sender.has_state(transaction_id, "completed")
    await admin.opened(f"/wires/{transaction_id}")
    history = await admin.text(".timeline")
    assert "The invoice was checked." in history
    assert "completed" in history
    await admin.page.get_by_label("Find by id").fill(request_id)
    await admin.page.keyboard.press("Enter")
    await admin.page.locator("h1", has_text=request_id).wait_for()
    way = await admin.text("#part-steps + *")
    assert "payments.send_wire" in way
    assert "pending approval" in way
    await admin.page.locator(f"#part-steps + * a[title='{transaction_id}']").first.click()
    await admin.page.locator("h1", has_text=transaction_id).wait_for()


async def test_a_wire_of_unknown_outcome_is_resolved(admin: Seat, live: Live) -> None:
    sender = await new_sender(live, "500.00")
    await live.bank.fault("core", "send_wire", "error")
    transaction_id = (await sender.send("7.00", new_key())).body["transaction_id"]

    async def resolved() -> bool:
        """It is refused while the provider is being asked about the wire, and while a send may still arrive."""
        await last_send_arrives(live.stack.environment, "payments", transaction_id)
        await admin.opened("/wires?unknown=true")
        await admin.page.locator(f"#table-wires a[title='{transaction_id}']").click()
        await admin.acts("Resolve", "The bank has no such wire.", decision="rejected")
        return await admin.message() == "The wire is resolved."

    await eventually("the wire is resolved", resolved, poll_seconds=PAGE_POLL_SECONDS)
    await live.bank.heal()

    assert await admin.fact("State") == "rejected"
    entry = await audited(live, "payments", "wires.resolve", admin.name)
    assert entry["reason"] == "The bank has no such wire."


async def test_a_dead_letter_is_replayed(admin: Seat, live: Live) -> None:
    event_id = await dead_letter(live)

    await admin.opened("/dead-letters")
    await admin.page.locator(f"#table-dead-letters a[title^='{event_id}-']").click()
    assert (await admin.text("h1")).startswith(f"Dead letter {event_id}-")
    await admin.acts("Replay", "The reader of it was mended.")

    assert await admin.message() == "The dead letter is replayed."
    entry = await audited(live, DISPATCHER, "dead.replay", admin.name)
    assert entry["reason"] == "The reader of it was mended."


async def test_a_delivery_is_resent(admin: Seat, live: Live) -> None:
    partner = await live.of_tenant("resent")
    async with receiver() as endpoint, subscribed(partner, endpoint) as subscriber:
        await live.onboarded(api=partner)
        over = await subscriber.is_over(ONBOARDED.total())
        delivery_id = over[0]["delivery_id"]

        await admin.opened(f"/subscriptions/{subscriber.subscription_id}")
        await admin.page.locator(f"main a[title='{delivery_id}']").click()
        await admin.acts("Resend", "The subscriber lost it.")

        assert await admin.message() == "The delivery is scheduled."
        await subscriber.is_over(ONBOARDED.total() + 1)
        assert subscriber.ids.count(over[0]["event_id"]) == 2


async def test_a_key_is_rotated_once_and_its_new_secret_shown_once(admin: Seat, live: Live) -> None:
    """A second rotation would end the secret that programs sign with."""
    made = await live.stack.new_key("partner", "--tenant", "rotated")
    key = made.subscription_key
    sent: list[str] = []

    async def press_again(route: Route) -> None:
        sent.append(route.request.method)
        if len(sent) == 1:
            await admin.page.mouse.down()
            await admin.page.mouse.up()
        await route.continue_()

    await admin.opened(f"/keys/{key}/rotate")
    await admin.page.route("**/rotate", press_again)
    await admin.page.get_by_label("Reason").fill("It was in a chat.")
    await admin.page.locator("#do").click()
    secret = await admin.fact("Secret")
    await admin.page.locator("#go-on").click()
    await admin.page.locator("#action-rotate").wait_for()
    await admin.page.unroute("**/rotate")

    assert sent == ["POST"]
    assert secret != made.secret
    assert secret not in await admin.page.content()
    for signed_with in (secret, made.secret):
        answer = await live.api(Key(key, signed_with, "rotated")).get("/partner/reseller/accounts")
        assert answer.status == 200
    entry = await audited(live, "gateway", "keys.rotate", admin.name)
    assert entry["reason"] == "It was in a chat."


async def test_one_press_does_nothing_once_more_after_the_browser_went_back(
    admin: Seat, live: Live
) -> None:
    """Of a key a second rotation would end the secret that programs sign with."""
    made = await live.stack.new_key("partner", "--tenant", "rotated-back")
    key, reason = made.subscription_key, admin.page.get_by_label("Reason")
    await admin.opened(f"/keys/{key}/rotate")
    await reason.fill("It was in a chat.")
    await admin.page.locator("#do").click()
    secret = await admin.fact("Secret")

    await admin.page.go_back()
    left = await reason.input_value()
    await admin.page.locator("#do").click()

    assert left == ""
    assert await reason.evaluate("field => field.validity.valueMissing")
    for signed_with in (secret, made.secret):
        answer = await live.api(Key(key, signed_with, made.tenant)).get(
            "/partner/reseller/accounts"
        )
        assert answer.status == 200


async def test_a_difference_is_found_and_explained(admin: Seat, live: Live) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]
    opened = await live.bank.simulate(
        "accounts", customer_id=customer_id, account_title="Nobody's account"
    )
    row = admin.page.locator("#table-differences tr", has_text=opened["account_id"])

    await admin.opened("/reconciliation")
    await admin.acts("Reconcile now", "The bank opened an account by hand.")

    async def found() -> bool:
        await admin.opened("/differences?state=open")
        return await row.count() == 1

    await eventually("the difference is listed", found, 60, PAGE_POLL_SECONDS)
    await row.get_by_role("link").first.click()
    await admin.page.locator("#table-beside").wait_for()
    assert customer_id in await admin.text("#table-beside")
    await admin.acts("Explain", "Opened by hand, to be closed on Monday.")
    assert await admin.message() == "The difference is explained."
    assert await admin.fact("Reason") == "Opened by hand, to be closed on Monday."
    await live.bank.change(opened["account_id"], "close")


async def test_a_viewer_is_shown_no_action_and_allowed_none(
    viewer: Seat, admin: Seat, live: Live
) -> None:
    wire = (await waiting_wire(live))[1].data["transaction_id"]
    letter_id = await dead_letter(live)
    key = live.partner.key.subscription_key
    letter = f"/dead-letters/{letter_id}"
    of_letter = f"?service={DISPATCHER}"
    forms: dict[str, dict[str, str]] = {
        f"/wires/{wire}/resolve": {"decision": "rejected"},
        f"/wires/{wire}/approve": {},
        f"{letter}/replay{of_letter}": {},
        f"{letter}/discard{of_letter}": {},
        f"/keys/{key}/rotate": {},
        "/keys/create": {"family": "partner", "tenant": "mine"},
        "/operators/create": {"name": "mine", "role": Role.ADMIN},
        "/reconciliation/start": {},
    }

    assert await viewer.opened(f"/wires/{wire}") == 200
    assert await viewer.page.locator("main .buttons a, main form").count() == 0
    token = await viewer.page.locator("#log-out").evaluate("e => e.form.elements.csrf.value")
    refused = {
        path: (
            await viewer.opened(path),
            (
                await viewer.context.request.post(
                    f"{viewer.url}{path}",
                    form={"csrf": token, "reason": "By hand", **form},
                    headers={"Origin": viewer.url},
                    max_redirects=0,
                )
            ).status,
        )
        for path, form in forms.items()
    }
    # The same form without the token of its session, by one who may.
    without_token = await admin.context.request.post(
        f"{admin.url}/wires/{wire}/approve",
        form={"reason": "By hand"},
        headers={"Origin": admin.url},
        max_redirects=0,
    )

    assert refused == dict.fromkeys(forms, (403, 403))
    assert without_token.status == 403
    await admin.opened(f"/wires/{wire}")
    assert await admin.fact("State") == "pending approval"
    await admin.opened(f"/dead-letters?service={DISPATCHER}")
    assert letter_id in await admin.page.content()
