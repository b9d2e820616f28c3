"""Actions: who may do what, what a form says and asks, and what is asked of the gateway once."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.errors import (
    InvalidState,
    NotFound,
    OutcomePending,
    SessionEnded,
    Unavailable,
)
from libs.contracts.operating.commands import GET_COMMAND, LIST_COMMANDS, RETRY_COMMAND
from libs.contracts.operating.customers import GET_CUSTOMER, OperatorPerson
from libs.contracts.operating.differences import (
    EXPLAIN_DIFFERENCE,
    GET_DIFFERENCE,
    OperatorDifference,
)
from libs.contracts.operating.feeds import (
    GET_FEED,
    LIST_FEEDS,
    FeedStop,
    FeedWithSkips,
    GatheredFeeds,
)
from libs.contracts.operating.keys import CREATE_KEY, GET_KEY, ROTATE_KEY, KeyView
from libs.contracts.operating.operators import CREATE_OPERATOR, CreatedOperator
from libs.contracts.operating.pages import Listed
from libs.contracts.operating.resealing import RESEAL, KeyUse, ResealStep
from libs.contracts.operating.restores import (
    CLOSE_RESTORES,
    LIST_RESTORES,
    CloseRestoresOf,
    GatheredRestores,
    Restore,
    RestoreDecided,
)
from libs.contracts.operating.saga_steps import LIST_STEPS
from libs.contracts.operating.services import Gathered
from libs.contracts.operating.webhooks import (
    GET_SUBSCRIPTION,
    LIST_DELIVERIES,
    RECOVER,
    OperatorDelivery,
    OperatorRecovery,
    OperatorSubscriptionDetail,
)
from libs.contracts.operating.wires import (
    GET_WIRE,
    RESOLVE_WIRE,
    WireAtProvider,
    WireDecision,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from libs.contracts.webhook_views import SubscriptionStatus
from libs.contracts.wires import WireState
from services.console.application import SUBJECTS
from tests.unit.console.browser import Answer, console
from tests.unit.console.gateway_double import AT
from tests.unit.console.samples import (
    CUSTOMER_ID,
    WIRE_ID,
    command,
    customer_with,
    gateway,
    saga_step,
    wire,
    wire_detail,
)

RESOLVE = f"/wires/{WIRE_ID}/resolve"
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


async def test_a_difference_is_explained_as_the_page_of_the_form_shows_it() -> None:
    difference = OperatorDifference(
        difference_id=WIRE_ID,
        comparison="balances",
        kind="balance",
        subject="acc_1",
        ids={},
        ours={"total": Decimal("1.00")},
        theirs={"total": Decimal("2.00")},
        first_seen=AT,
        last_seen=AT,
        closed_at=None,
        closed_as=None,
        reason=None,
        closed_by=None,
        revision=2,
    )
    changed = difference.model_copy(update={"revision": 3, "theirs": {"total": Decimal("3.75")}})
    double = gateway()
    double.answer(GET_DIFFERENCE, difference)
    double.answer(EXPLAIN_DIFFERENCE, InvalidState("It has revision 3 now: read it again."))
    async with console(double) as browser:
        page = await browser.get(f"/differences/{WIRE_ID}")
        [link] = re.findall(r'href="(/differences/[^"]+/explain[^"]*)"', page.text)
        unseen = await browser.post(f"{link}?revision=2", {"reason": "Known."})
        form = await browser.get(link)
        double.answer(GET_DIFFERENCE, changed)
        refused = await browser.post(link, hidden_of(form) | {"reason": "Known."})
        double.answer(EXPLAIN_DIFFERENCE, changed)
        explained = await browser.post(link, hidden_of(refused) | {"reason": "Known."})

    assert unseen.status == 422
    assert "Revision: The form did not send what its page showed" in unseen.text
    assert refused.status == 409
    assert "It has revision 3 now" in refused.text
    assert "3.75" in refused.text
    assert explained.status == 303
    assert [asked.revision for asked in double.commands(EXPLAIN_DIFFERENCE)] == [2, 3]


def hidden_of(page: Answer) -> dict[str, str]:
    """What the form of a page sends besides what is typed."""
    form = page.text.partition('<form class="act"')[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


async def test_what_a_role_may_not_do_is_not_shown_and_not_done() -> None:
    double = gateway(Role.VIEWER)
    async with console(double) as browser:
        page = await browser.get(f"/wires/{WIRE_ID}")
        asked = await browser.get(RESOLVE)
        operators = await browser.get("/operators/create")

    assert "action-resolve" not in page.text
    assert (asked.status, operators.status) == (403, 403)


async def test_an_action_says_what_it_does_then_takes_its_reason_and_says_it_is_done() -> None:
    double = gateway()
    async with console(double) as browser:
        page = await browser.get(f"/wires/{WIRE_ID}")
        asked = await browser.get(RESOLVE)
        before = double.commands(RESOLVE_WIRE)
        done = await browser.post(RESOLVE, {"decision": "ask", "reason": " They were asked. "})
        after = await browser.get(f"/wires/{WIRE_ID}")
        later = await browser.get(f"/wires/{WIRE_ID}")

    assert f'href="{RESOLVE}"' in page.text
    assert 'id="effect"' in asked.text
    assert "Invoice 7" in asked.text
    assert before == []
    assert (done.status, done.location) == (303, f"/wires/{WIRE_ID}")
    [command] = double.commands(RESOLVE_WIRE)
    assert (command.decision, command.reason) == (WireDecision.ASK, "They were asked.")
    assert "The bank is asked: the state below is what is known." in after.text
    assert "The wire is resolved." not in after.text
    assert "The bank is asked: the state below is what is known." not in later.text


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


async def test_a_retry_leads_to_the_list_since_the_command_may_be_final_by_then() -> None:
    double = gateway()
    double.answer(GET_COMMAND, NotFound())
    double.answer(RETRY_COMMAND, command())
    double.answer(LIST_COMMANDS, Gathered(items=[], unreachable=[]))
    async with console(double) as browser:
        path = f"/commands/{WIRE_ID}/retry?service=payments"
        done = await browser.post(path, {"reason": "The bank is back."})
        after = await browser.get(done.location or "")

    assert done.location == "/commands"
    assert "The command is driven." in after.text


async def test_what_was_done_is_said_on_its_own_page_alone() -> None:
    other = CUSTOMER_ID
    async with console(gateway()) as browser:
        await browser.post(RESOLVE, {"decision": "rejected", "reason": "They have no such wire."})
        elsewhere = [
            await browser.get(path)
            for path in (f"/wires/{other}", f"/wires/{WIRE_ID}?at=another", "/wires")
        ]
        after = await browser.get(f"/wires/{WIRE_ID}")

    assert [page.status for page in elsewhere] == [200, 200, 200]
    assert not any("The wire is resolved." in page.text for page in elsewhere)
    assert "The wire is resolved." in after.text


async def test_a_wire_is_said_to_be_resolved_where_it_is() -> None:
    double = gateway()
    async with console(double) as browser:
        await browser.post(RESOLVE, {"decision": "rejected", "reason": "They have no such wire."})
        after = await browser.get(f"/wires/{WIRE_ID}")

    assert "The wire is resolved." in after.text


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


def restore(since: datetime, *missing: str) -> Restore:
    return Restore(
        service="payments", since=since, missing=len(missing), missing_records=[*missing]
    )


async def test_all_cases_of_a_service_are_closed_as_its_page_showed_them() -> None:
    cases = [restore(AT, "bank: w_1"), restore(AT + timedelta(hours=1), "bank: w_2", "bank: w_3")]
    found = GatheredRestores(restores=cases, services=["payments"], unreachable=[])
    double = gateway()
    double.answer(LIST_RESTORES, found)
    double.answer(CLOSE_RESTORES, InvalidState("There are 4 by now."))
    async with console(double) as browser:
        listed = await browser.get("/restores")
        page = await browser.get("/restores/payments/close")
        form = {"missing": "3", "reason": "They were mended.", "service": "onboarding"}
        refused = await browser.post("/restores/payments/close", form)
        double.answer(CLOSE_RESTORES, RestoreDecided(service="payments", closed=2))
        closed = await browser.post("/restores/payments/close", form)
        double.answer(LIST_RESTORES, found.model_copy(update={"restores": []}))
        over = await browser.get("/restores/payments/close")

    assert listed.text.count('href="/restores/payments/close"') == 2
    assert all(record in page.text for record in ("w_1", "w_2", "w_3"))
    assert 'name="missing" value="3"' in page.text
    assert "There are 4 by now." in refused.text
    assert closed.location == "/restores"
    expected = CloseRestoresOf(service="payments", missing=3, reason="They were mended.")
    assert double.commands(CLOSE_RESTORES) == [expected, expected]
    assert 'id="do"' not in over.text


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


async def test_a_form_cannot_name_another_thing_than_its_page() -> None:
    double = gateway()
    async with console(double) as browser:
        form = {"transaction_id": "another", "decision": "ask", "reason": "Why."}
        await browser.post(RESOLVE, form)

    assert [command.transaction_id for command in double.commands(RESOLVE_WIRE)] == [WIRE_ID]


async def test_the_lines_of_a_reason_are_kept_as_one() -> None:
    double = gateway()
    async with console(double) as browser:
        form = {"decision": "ask", "reason": "They were asked.\r\n\r\n  No answer. "}
        done = await browser.post(RESOLVE, form)
        form["reason"] = "A\x07bell."
        refused = await browser.post(RESOLVE, form)

    assert (done.status, refused.status) == (303, 422)
    assert [command.reason for command in double.commands(RESOLVE_WIRE)] == [
        "They were asked. No answer."
    ]


async def test_without_a_reason_nothing_is_done() -> None:
    double = gateway()
    async with console(double) as browser:
        answer = await browser.post(RESOLVE, {"decision": "ask", "reason": "  "})

    assert answer.status == 422
    assert double.commands(RESOLVE_WIRE) == []


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (InvalidState("The wire is final."), 409, "The wire is final."),
        (OutcomePending(), 504, "it may have been done"),
    ],
)
async def test_what_was_refused_keeps_what_was_typed(
    error: Exception, status: int, said: str
) -> None:
    double = gateway()
    double.answer(RESOLVE_WIRE, error)
    async with console(double) as browser:
        answer = await browser.post(RESOLVE, {"decision": "ask", "reason": "A reason."})

    assert answer.status == status
    assert said in answer.text
    assert ">A reason.</textarea>" in answer.text


@pytest.mark.parametrize(
    ("operation", "path", "form", "said"),
    [
        (ROTATE_KEY, "/keys/sub_1/rotate", {}, "Do not rotate it again"),
        (CREATE_KEY, "/keys/create", {"family": "partner", "tenant": "acme"}, "revoke it"),
        (CREATE_OPERATOR, "/operators/create", {"name": "eve", "role": "viewer"}, "name is taken"),
    ],
)
async def test_an_answer_with_a_secret_that_is_lost_is_no_reason_to_repeat_the_request(
    operation: Operation, path: str, form: dict[str, str], said: str
) -> None:
    double = gateway(Role.ADMIN)
    double.answer(GET_KEY, NotFound())
    double.answer(operation, OutcomePending())
    async with console(double) as browser:
        answer = await browser.post(path, {**form, "reason": "Why."})

    assert answer.status == 504
    assert "it may have been done" in answer.text
    assert said in answer.text
    assert 'id="do"' not in answer.text


async def test_a_rotation_says_that_a_second_one_ends_the_first_secret_and_until_when() -> None:
    rotated = {"previous_secret_expires_at": datetime.now(UTC) + timedelta(hours=3)}
    double = gateway(Role.ADMIN)
    double.answer(GET_KEY, key_that_expires(None).model_copy(update=rotated))
    async with console(double) as browser:
        page = await browser.get("/keys/sub_1/rotate")

    assert "a second rotation within the overlap ends the first secret at once" in page.text
    assert "<dt>Previous secret expires</dt><dd><time " in page.text


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


@pytest.mark.parametrize(
    ("answer", "asked"), [(wire(), 1), (OutcomePending(), 1), (InvalidState("It is final."), 2)]
)
async def test_a_form_that_was_not_refused_is_carried_out_once(answer: Any, asked: int) -> None:
    double = gateway()
    double.answer(RESOLVE_WIRE, answer)
    async with console(double) as browser:
        form = {
            "decision": "ask",
            "reason": "Why.",
            "form": form_number_of(await browser.get(RESOLVE)),
        }
        await browser.post(RESOLVE, form)
        again = await browser.post(RESOLVE, form)
        another = {**form, "form": form_number_of(await browser.get(RESOLVE))}
        await browser.post(RESOLVE, another)

    assert again.status == 409
    assert ("was sent already" in again.text) == (asked == 1)
    assert ('id="do"' in again.text) == (asked == 2)
    assert len(double.commands(RESOLVE_WIRE)) == asked + 1


def form_number_of(page: Answer) -> str:
    [number] = re.findall(r'name="form" value="([\w-]+)"', page.text)
    return str(number)


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


async def test_a_form_goes_on_with_what_one_request_had_no_time_for() -> None:
    double = gateway()
    double.answer(GET_SUBSCRIPTION, NotFound())
    recover = f"/subscriptions/{CUSTOMER_ID}/recover"
    form = {"since": "2026-11-23T01:02:03Z", "reason": "Why."}
    async with console(double) as browser:
        double.answer(RECOVER, OperatorRecovery(scheduled=2, next='{"after":"here"}'))
        begun = await browser.post(recover, form)
        double.answer(RECOVER, OperatorRecovery(scheduled=5, next=None))
        done = await browser.post(recover, form | {"after": '{"after":"here"}'})

    assert (begun.status, done.status) == (200, 200)
    assert "go on with the rest" in begun.text
    shown = '<dt>Scheduled</dt><dd><span class="number">{}</span></dd>'
    assert shown.format(2) in begun.text
    assert shown.format(5) in done.text
    assert ">Why.</textarea>" in begun.text
    assert 'name="after" value="{&#34;after&#34;:&#34;here&#34;}"' in begun.text
    assert double.commands(RECOVER)[-1].after == '{"after":"here"}'


async def test_resealing_shows_what_each_step_did_and_goes_on() -> None:
    double = gateway(Role.ADMIN)
    step = ResealStep(
        part="subscription_keys.secret",
        rows=41,
        unopened=0,
        passed_over=0,
        keys=[KeyUse(ring="STORAGE_KEYS", key_id="k1", values=3)],
        rings={"STORAGE_KEYS": ["k2", "k1"]},
        next="[1]",
    )
    form = {"service": "gateway", "reason": "A new storage key."}
    async with console(double) as browser:
        double.answer(RESEAL, step)
        begun = await browser.post("/keys/reseal", form)
        double.answer(RESEAL, step.model_copy(update={"rows": 0, "next": None}))
        done = await browser.post("/keys/reseal", form | {"after": "[1]"})
        double.role = Role.OPERATOR
        browser.cookies["__Host-bankside-session"] = "u" * 43
        refused = await browser.get("/keys/reseal")

    assert all(shown in begun.text for shown in ("subscription_keys.secret", "41", 'value="[1]"'))
    assert "Everything was walked over." in done.text
    assert "a secret on it" not in done.text
    assert [command.after for command in double.commands(RESEAL)] == [None, "[1]"]
    assert refused.status == 403


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


@pytest.mark.parametrize(
    ("gone", "said"),
    [(NotFound(), "There is nothing of this name"), (SessionEnded(), "no such session")],
)
async def test_what_became_of_a_decision_is_said_also_where_its_item_or_the_session_is_gone(
    gone: Exception, said: str
) -> None:
    double = gateway()
    double.answer(GET_WIRE, gone)
    double.answer(RESOLVE_WIRE, InvalidState("The wire is final."))
    async with console(double) as browser:
        answer = await browser.post(RESOLVE, {"decision": "ask", "reason": "Why."})

    assert answer.status == 409
    assert "The wire is final." in answer.text
    assert said in answer.text


async def test_a_new_secret_is_shown_by_the_answer_itself() -> None:
    double = gateway(Role.ADMIN)
    made = CreatedOperator(
        name="eve",
        role="viewer",
        subscription_key="sub_1",
        secret="s3cret",
        one_time_password="0ne-time",
    )
    double.answer(CREATE_OPERATOR, made)
    async with console(double) as browser:
        form = {"name": "eve", "role": "viewer", "reason": "She begins today."}
        answer = await browser.post("/operators/create", form)

    assert answer.status == 200
    assert "s3cret" in answer.text
    assert "0ne-time" in answer.text
    assert "s3cret" not in str(answer.cookies)
    assert "/keys/sub_1" not in answer.text, (
        "the page is shown once, and keys of operators have none"
    )
