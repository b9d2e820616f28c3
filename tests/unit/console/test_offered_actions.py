"""Actions before anything is typed: which are offered to whom, and what the pages of their forms show."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.contracts.errors import NotFound, Unavailable
from libs.contracts.operating.commands import GET_COMMAND
from libs.contracts.operating.customers import GET_CUSTOMER, OperatorPerson
from libs.contracts.operating.feeds import (
    GET_FEED,
    LIST_FEEDS,
    FeedStop,
    FeedWithSkips,
    GatheredFeeds,
)
from libs.contracts.operating.keys import GET_KEY, KeyView
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.restores import LIST_RESTORES
from libs.contracts.operating.saga_steps import LIST_STEPS
from libs.contracts.operating.webhooks import (
    GET_SUBSCRIPTION,
    LIST_DELIVERIES,
    OperatorDelivery,
    OperatorSubscriptionDetail,
)
from libs.contracts.operating.wires import GET_WIRE, WireAtProvider
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from libs.contracts.webhook_views import SubscriptionStatus
from libs.contracts.wires import WireState
from services.console.application import SUBJECTS
from tests.unit.console.browser import console
from tests.unit.console.gateway_double import AT
from tests.unit.console.samples import (
    CUSTOMER_ID,
    RESOLVE,
    WIRE_ID,
    customer_with,
    gateway,
    restore,
    saga_step,
    wire_detail,
)

ALL = [subject for _, group in SUBJECTS for subject in group]
DETAILS = [detail for subject in ALL for detail in subject.details]
PATHS = {
    action.path: re.sub(r"{\w+}", WIRE_ID, action.path.replace("{service}", "payments"))
    + f"?service=payments&queue=payments.commands&customer_id={CUSTOMER_ID}&position=1"
    for subject in ALL
    for action in subject.actions()
}
OF_ITEMS = [
    path for path in PATHS if path.rpartition("/")[0] in {detail.path for detail in DETAILS}
]


async def test_what_a_role_may_not_do_is_not_shown_and_not_done() -> None:
    double = gateway(Role.VIEWER)
    async with console(double) as browser:
        page = await browser.get(f"/wires/{WIRE_ID}")
        asked = await browser.get(RESOLVE)
        operators = await browser.get("/operators/create")

    assert "action-resolve" not in page.text
    assert (asked.status, operators.status) == (403, 403)


@pytest.mark.parametrize(
    ("state", "at_bank", "is_offered"),
    [
        (WireState.SUBMITTED, WireState.SUBMITTED, False),
        (WireState.SUBMITTED, WireState.COMPLETED, True),
        (WireState.COMPLETED, WireState.SUBMITTED, False),
        (WireState.COMPLETED, WireState.RETURNED, True),
    ],
)
async def test_a_wire_is_resolved_where_the_bank_shows_a_later_state(
    state: WireState, at_bank: WireState, is_offered: bool
) -> None:
    double = gateway()
    shown = WireAtProvider(found=True, state=at_bank)
    double.answer(GET_WIRE, wire_detail(state=state, outcome_unknown=False, provider=shown))

    async with console(double) as browser:
        page = await browser.get(f"/wires/{WIRE_ID}")

    assert (f'href="{RESOLVE}"' in page.text) is is_offered


@pytest.mark.parametrize(("state", "is_offered"), [("intended", True), ("done", False)])
async def test_a_step_is_resolved_once_more_until_its_command_has_acted_on_the_decision(
    state: str, is_offered: bool
) -> None:
    resolved = {"outcome_unknown": False, "resolution": "done", "state": state}
    step = saga_step().model_copy(update=resolved)
    double = gateway()
    double.answer(LIST_STEPS, Listed(items=[step]))

    async with console(double) as browser:
        page = await browser.get("/saga-steps?kind=unknown")

    assert ("/resolve" in page.text) is is_offered


@pytest.mark.parametrize("status", SubscriptionStatus)
async def test_recoveries_and_resends_are_offered_for_a_subscription_that_is_active(
    status: SubscriptionStatus,
) -> None:
    """Those of any other are refused."""
    delivery: dict[str, Any] = dict.fromkeys(OperatorDelivery.model_fields)
    delivery |= {"subscription_id": CUSTOMER_ID, "delivery_id": WIRE_ID}
    sent = OperatorDelivery.model_construct(**delivery | {"subscription_status": status})
    of_before = OperatorDelivery.model_construct(**delivery)
    values: dict[str, Any] = dict.fromkeys(OperatorSubscriptionDetail.model_fields)
    values |= {"subscription_id": CUSTOMER_ID, "status": status}
    double = gateway()
    double.answer(GET_SUBSCRIPTION, OperatorSubscriptionDetail.model_construct(**values))
    double.answer(LIST_DELIVERIES, Listed(items=[sent]))
    async with console(double) as browser:
        page = await browser.get(f"/subscriptions/{CUSTOMER_ID}")
        double.answer(LIST_DELIVERIES, Listed(items=[of_before]))
        before = await browser.get(f"/subscriptions/{CUSTOMER_ID}")

    is_active = status is SubscriptionStatus.ACTIVE
    assert [each in page.text for each in ("/recover", "/resend")] == [is_active, is_active]
    assert "/resend" in before.text, "a service of the release before does not say the status"


async def test_a_key_that_has_expired_is_offered_nothing_but_its_end() -> None:
    key = key_that_expires(datetime.now(UTC) + timedelta(hours=1))
    double = gateway(Role.ADMIN)
    double.answer(GET_KEY, key)
    async with console(double) as browser:
        active = await browser.get("/keys/sub_1")
        over = key.model_copy(update={"expires_at": datetime.now(UTC) - timedelta(hours=1)})
        double.answer(GET_KEY, over)
        expired = await browser.get("/keys/sub_1")

    offered = re.compile(r'href="/keys/sub_1/(\w+)"')
    assert offered.findall(active.text) == ["rotate", "scopes", "networks", "revoke"]
    assert offered.findall(expired.text) == ["revoke"]


def key_that_expires(expires_at: datetime | None) -> KeyView:
    return KeyView(
        subscription_key="sub_1",
        tenant="acme",
        family="partner",
        customer_id=None,
        scopes=["accounts:read"],
        allowed_networks=[],
        reads_per_minute=1,
        writes_per_minute=1,
        wires_per_minute=1,
        created_at=AT,
        expires_at=expires_at,
        revoked_at=None,
        last_used_at=None,
    )


async def test_a_rotation_says_that_a_second_one_ends_the_first_secret_and_until_when() -> None:
    rotated = {"previous_secret_expires_at": datetime.now(UTC) + timedelta(hours=3)}
    double = gateway(Role.ADMIN)
    double.answer(GET_KEY, key_that_expires(None).model_copy(update=rotated))
    async with console(double) as browser:
        page = await browser.get("/keys/sub_1/rotate")

    assert "a second rotation within the overlap ends the first secret at once" in page.text
    assert "<dt>Previous secret expires</dt><dd><time " in page.text


async def test_the_page_of_a_skip_shows_the_entry_that_it_skips() -> None:
    stop = FeedStop(
        entry_position=41,
        entry_type="wire.moved",
        error="It has no amount.",
        outline=None,
        since=AT,
        tried_at=AT,
        tries=7,
    )
    feed = FeedWithSkips(service="payments", feed="wires", position=40, stop=stop, skips=[])
    double = gateway()
    double.answer(LIST_FEEDS, GatheredFeeds(feeds=[feed], unreachable=[]))
    double.answer(GET_FEED, feed)
    async with console(double) as browser:
        listed = await browser.get("/feeds")
        [skip] = re.findall(r'href="([^"]+/skip[^"]*)"', listed.text)
        page = await browser.get(html.unescape(skip))

    [facts, stopped] = re.findall(r'<dl class="facts".*?</dl>', page.text, re.DOTALL)
    assert '<dt>Position</dt><dd><span class="text">41</span>' in facts
    assert ">40<" not in page.text
    assert "wire.moved" in stopped
    assert "It has no amount." in stopped


async def test_the_page_of_a_step_shows_the_customer_and_what_is_done_for_it() -> None:
    step = saga_step()
    double = gateway()
    double.answer(LIST_STEPS, Listed(items=[step]))
    double.answer(GET_CUSTOMER, customer_with(step))
    async with console(double) as browser:
        listed = await browser.get("/saga-steps?kind=unknown")
        [resolve] = re.findall(r'href="([^"]+/resolve[^"]*)"', listed.text)
        page = await browser.get(html.unescape(resolve))
        double.answer(GET_CUSTOMER, customer_with())
        elsewhere = await browser.get(html.unescape(resolve))

    assert f"/customers/{CUSTOMER_ID}" in page.text
    assert "onboarding.onboard_customer" in page.text
    assert elsewhere.status == 404
    assert "onboarding.onboard_customer" not in elsewhere.text


async def test_the_page_of_a_reveal_shows_whose_values_there_are() -> None:
    person: dict[str, Any] = dict.fromkeys(OperatorPerson.model_fields)
    person |= {"customer_id": WIRE_ID, "first_name": "Ada"}
    persons = [OperatorPerson.model_construct(**person)]
    double = gateway(Role.ADMIN)
    double.answer(GET_CUSTOMER, customer_with(saga_step()).model_copy(update={"persons": persons}))
    async with console(double) as browser:
        page = await browser.get(f"/customers/{CUSTOMER_ID}/reveal")

    assert re.search(rf'data-label="Person"[^>]*><a [^>]*title="{WIRE_ID}"', page.text)
    assert "Ada" in page.text
    assert "core_customer" not in page.text


class Anything(dict[str, Any]):
    """An item of any page, and an answer that has one."""

    @property
    def letters(self) -> list[Any]:
        return [{}]

    @property
    def steps(self) -> list[Any]:
        return [saga_step().model_copy(update={"saga_id": WIRE_ID, "step": WIRE_ID})]

    @property
    def restores(self) -> list[Any]:
        return [restore(AT)]


async def test_the_page_of_every_action_is_shown_before_anything_is_typed() -> None:
    double = gateway(Role.ADMIN)
    for detail in DETAILS:
        double.answer(detail.operation, Anything())
    async with console(double) as browser:
        pages = {name: await browser.get(path) for name, path in PATHS.items()}

    assert {path: page.status for path, page in pages.items() if page.status != 200} == {}
    assert [path for path, page in pages.items() if 'id="do"' not in page.text] == []


async def test_the_page_of_an_action_on_nothing_is_not_there() -> None:
    double = gateway(Role.ADMIN)
    for detail in DETAILS:
        double.answer(detail.operation, NotFound())
    async with console(double) as browser:
        statuses = [(await browser.get(PATHS[name])).status for name in OF_ITEMS]

    assert {*statuses} == {404}


@pytest.mark.parametrize(
    ("operation", "path", "is_offered"),
    [
        (GET_WIRE, f"/wires/{WIRE_ID}/approve", False),
        (GET_WIRE, f"/wires/{WIRE_ID}/decline", False),
        (LIST_RESTORES, "/restores/payments/close", False),
        (GET_COMMAND, f"/commands/{WIRE_ID}/retry?service=payments", True),
        (GET_COMMAND, f"/commands/{WIRE_ID}/abandon?service=payments", False),
    ],
)
async def test_what_cannot_be_undone_is_not_decided_on_unseen(
    operation: Operation, path: str, is_offered: bool
) -> None:
    double = gateway()
    double.answer(operation, Unavailable("It is away."))
    async with console(double) as browser:
        page = await browser.get(path)

    assert page.status == 200
    assert "The service cannot be reached. It is away." in page.text
    assert ('id="do"' in page.text) is is_offered
