"""Forms that are sent: what is asked of the gateway, once, and what is said of it then."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.errors import InvalidState, NotFound, OutcomePending, SessionEnded
from libs.contracts.operating.commands import GET_COMMAND, LIST_COMMANDS, RETRY_COMMAND
from libs.contracts.operating.differences import (
    EXPLAIN_DIFFERENCE,
    GET_DIFFERENCE,
    OperatorDifference,
)
from libs.contracts.operating.keys import CREATE_KEY, GET_KEY, ROTATE_KEY
from libs.contracts.operating.operators import CREATE_OPERATOR, CreatedOperator
from libs.contracts.operating.resealing import RESEAL, KeyUse, ResealStep
from libs.contracts.operating.restores import (
    CLOSE_RESTORES,
    LIST_RESTORES,
    CloseRestoresOf,
    GatheredRestores,
    RestoreDecided,
)
from libs.contracts.operating.services import Gathered
from libs.contracts.operating.webhooks import GET_SUBSCRIPTION, RECOVER, OperatorRecovery
from libs.contracts.operating.wires import GET_WIRE, RESOLVE_WIRE, WireDecision
from libs.contracts.operation import Operation
from libs.contracts.principal import Role
from tests.unit.console.browser import Answer, console
from tests.unit.console.gateway_double import AT
from tests.unit.console.samples import (
    CUSTOMER_ID,
    RESOLVE,
    WIRE_ID,
    command,
    gateway,
    restore,
    wire,
)


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
