"""What payments has recorded of a request, as operators see it."""

from __future__ import annotations

import time
import uuid
from typing import Any

from msgspec import structs
from sqlalchemy import text

from libs.contracts.errors import ApproverIsInitiator, InsufficientFunds
from libs.contracts.events import Event
from libs.contracts.exact_json import encode
from libs.contracts.operating.requests import FindSteps, FoundSteps, TraceStep
from libs.contracts.wires import WireState
from libs.handling.answers import error_reply
from libs.handling.operating import auditing
from libs.handling.operating.request_steps import RequestSteps
from libs.messaging.envelope import Reply, raw
from libs.persistence import forgetting, inbox, outbox, request_records
from services.payments.handlers.request_steps import find_own_steps
from services.payments.repository.send_marks import begin_send, mark_lost_sends
from tests.integration.tables import finish
from tests.unit.payments.bench import MINE, Bench
from tests.unit.payments.test_operating import ADA


async def steps_of(bench: Bench, request_id: str) -> FoundSteps:
    found = RequestSteps("payments", bench.database, find_own_steps)
    result = await found.find(ADA, FindSteps(request_id=request_id), time.time() + 10)
    assert isinstance(result.data, FoundSteps)
    return result.data


async def answer(bench: Bench, leased: inbox.Leased, data: Any) -> None:
    reply = Reply(str(leased.command_id), leased.message_id, raw({"data": data}))
    await finish(bench.database, leased, encode(reply))


async def refuse(bench: Bench, leased: inbox.Leased) -> None:
    error = InsufficientFunds("The account holds less.")
    reply = error_reply(str(leased.command_id), leased.message_id, error)
    await finish(bench.database, leased, encode(reply))


def kinds(found: FoundSteps) -> list[tuple[str, str | None]]:
    return [(step.kind.value, step.state) for step in found.steps]


def one(found: FoundSteps, kind: str) -> TraceStep:
    (step,) = (step for step in found.steps if step.kind == kind)
    return step


async def test_a_wire_that_is_being_sent_is_shown_with_its_command_and_its_send(
    bench: Bench,
) -> None:
    send = await bench.wire(first_sent_seconds_ago=0)
    await bench.let_go(send)

    found = await steps_of(bench, send.request_id)

    assert found.resource_ids == [str(send.command_id)]
    command = one(found, "command")
    sent = one(found, "provider_request")
    assert one(found, "wire").state == "pending_submission"
    assert (command.state, command.error) == ("open", "outcome_pending")
    assert command.next_attempt_at is not None
    assert (command.subscription_key, command.tenant, command.customer_id) == (
        MINE.subscription_key,
        MINE.tenant,
        MINE.customer_id,
    )
    assert (sent.what, sent.state) == ("first send to core banking", "outcome unknown")
    assert sent.idempotency_key == str(send.command_id)


async def test_the_first_and_the_last_send_of_a_wire_are_shown(bench: Bench) -> None:
    send = await bench.wire(first_sent_seconds_ago=60)
    async with bench.database.transaction() as connection:
        await begin_send(connection, send.command_id)

    found = await steps_of(bench, send.request_id)

    assert [step.what for step in found.steps if step.kind == "provider_request"] == [
        "first send to core banking",
        "last send to core banking",
    ]


async def test_a_send_that_was_only_looked_up_as_it_may_be_lost_is_not_shown(bench: Bench) -> None:
    wire = await bench.wire(first_sent_seconds_ago=0)
    async with bench.database.transaction() as connection:
        await mark_lost_sends(connection, wire.command_id)

    found = await steps_of(bench, wire.request_id)

    assert [step.what for step in found.steps if step.kind == "provider_request"] == []


async def test_a_refused_command_says_what_was_answered(bench: Bench) -> None:
    send = await bench.accepted()
    await refuse(bench, send)

    found = await steps_of(bench, send.request_id)

    assert kinds(found) == [("command", "accepted"), ("result", "refused")]
    told = one(found, "result")
    assert (told.error, told.response_status) == ("insufficient_funds", 409)
    assert told.note == "The account holds less."


async def test_a_forgotten_command_says_what_its_caller_was_told(bench: Bench) -> None:
    forgotten = await bench.accepted()
    async with bench.database.transaction() as connection:
        await forgetting.begin(connection, forgotten, ApproverIsInitiator.code)
        await forgetting.forget(connection, forgotten)

    found = await steps_of(bench, forgotten.request_id)

    told = one(found, "result")
    assert (told.state, told.error, told.response_status) == (
        "forgotten",
        "approver_is_initiator",
        403,
    )


async def test_a_parked_and_an_abandoned_command_say_why(bench: Bench) -> None:
    parked, abandoned, unreadable = [await bench.accepted() for _ in range(3)]
    by_ada = "finished_at = clock_timestamp(), abandoned_by = 'operator:ada'"
    async with bench.database.transaction() as connection:
        for change, leased in (
            ("parked_at = clock_timestamp(), parked_because = 'It failed.'", parked),
            (f"{by_ada}, abandoned_because = 'By phone.'", abandoned),
            ("finished_at = clock_timestamp(), reply = 'no JSON', principal = ''", unreadable),
        ):
            await connection.execute(
                text(f"UPDATE inbox SET {change} WHERE command_id = :id"), {"id": leased.command_id}
            )

    shown = [one(await steps_of(bench, each.request_id), "result") for each in (parked, abandoned)]
    broken = await steps_of(bench, unreadable.request_id)

    assert [(step.state, step.note) for step in shown] == [
        ("parked", "It failed."),
        ("abandoned", "By phone."),
    ]
    assert shown[1].actor == "operator:ada"
    assert one(broken, "command").subscription_key is None
    assert one(broken, "result").note == "This release cannot read the stored answer."


async def test_a_command_of_an_operator_says_whose_key_it_has(bench: Bench) -> None:
    by_operator = await bench.accepted(ADA)
    by_customer = await bench.accepted()

    steps = [
        one(await steps_of(bench, leased.request_id), "command")
        for leased in (by_operator, by_customer)
    ]

    assert [(step.actor, step.subscription_key) for step in steps] == [
        ("operator:ada", ADA.subscription_key),
        (None, bench.owner.subscription_key),
    ]


async def test_the_request_that_canceled_a_wire_leads_to_its_history(bench: Bench) -> None:
    send = await bench.wire(WireState.SUBMITTED)
    cancel = await bench.accepted()
    await answer(bench, cancel, {"transaction_id": str(send.command_id)})

    found = await steps_of(bench, cancel.request_id)

    states = [step.state for step in found.steps if step.kind == "wire"]
    assert states == ["pending_submission", "submitted"]
    assert found.resource_ids == [str(send.command_id)]


async def test_what_an_operator_did_is_found_in_the_audit(bench: Bench) -> None:
    request_id = f'req-"{uuid.uuid4()}\\'
    async with bench.database.transaction() as connection:
        for of_request, reason in (
            (request_id, "Asked for."),
            (f"{request_id}x", "Another."),
            (request_id.upper(), "Another as well."),
        ):
            ada = structs.replace(ADA, request_id=of_request)
            await auditing.record(
                connection, ada, "wires.resolve", reason=reason, transaction_id="t-1"
            )

    (step,) = (await steps_of(bench, request_id)).steps

    assert (step.kind, step.what, step.state) == ("audit", "wires.resolve", "ok")
    assert (step.actor, step.transaction_id, step.address) == ("operator:ada", "t-1", ADA.address)
    assert step.subscription_key == ADA.subscription_key
    assert step.note == "reason Asked for."


async def test_of_an_id_that_many_requests_have_the_latest_commands_are_shown(bench: Bench) -> None:
    sends = [await bench.accepted() for _ in range(request_records.MOST_COMMANDS + 2)]
    same = str(uuid.uuid4())
    async with bench.database.transaction() as connection:
        await connection.execute(
            text("UPDATE inbox SET request_id = :same WHERE command_id = ANY(:ids)"),
            {"same": same, "ids": [send.command_id for send in sends]},
        )

    found = await steps_of(bench, same)

    assert found.is_cut
    assert [step.command_id for step in found.steps] == [
        str(send.command_id) for send in sends[-request_records.MOST_COMMANDS :]
    ]


async def test_an_event_that_waits_to_be_published_is_shown(bench: Bench) -> None:
    request_id, event_id = str(uuid.uuid4()), f"evt_{uuid.uuid4()}"
    event = Event(event_id, "wire.created", "t_1", "c_1", str(uuid.uuid4()), 1, b"{}")
    async with bench.database.transaction() as connection:
        await outbox.record(connection, event)
        await connection.execute(
            text("UPDATE outbox SET request_id = :request WHERE event_id = :id"),
            {"request": request_id, "id": event_id},
        )

    (step,) = (await steps_of(bench, request_id)).steps

    assert (step.kind, step.what, step.event_id) == ("event", "wire.created", event_id)
    assert step.state == "not published yet"


async def test_nothing_is_found_of_another_request(bench: Bench) -> None:
    await bench.wire()

    assert await steps_of(bench, str(uuid.uuid4())) == FoundSteps(steps=[])
