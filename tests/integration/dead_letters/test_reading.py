"""Dead letters as operators see them, with `bankside dead` and page by page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from aio_pika import Message
from aio_pika.abc import HeadersType
from uuid_utils import uuid7

from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating.dead_letters import (
    DISCARD_DEAD_LETTER,
    LIST_DEAD_LETTERS,
    REPLAY_DEAD_LETTER,
    ListDeadLettersOf,
    ReplayDeadLetterOf,
)
from libs.messaging.topology import events_queue
from tests.integration.dead_letters.site import (
    COMMAND_ID,
    QUEUE,
    Site,
    die,
    handlers,
    message_id_of,
)
from tests.support.answered_operators import AnsweredOperators


async def test_letters_are_listed_and_shown(site: Site) -> None:
    command, forged, unreadable = await site.letters()
    table = await site.seen("list")
    shown = await site.seen("show", COMMAND_ID)
    document = await site.seen("show", unreadable["id"], "--json")

    assert command["operation"] == "onboarding.update_business"
    assert command["command_id"] == COMMAND_ID
    assert command["reason"] == "rejected"
    assert (command["sender"], forged["sender"]) == ("gateway", "ledger_read")
    assert unreadable["operation"] is None
    assert "onboarding.update_business" in table
    assert "cannot be read" in table
    assert '"customer_id": "c-1"' in shown
    assert json.loads(document)["letters"][0]["body"] == "\N{REPLACEMENT CHARACTER}"


async def test_a_letter_whose_message_id_was_copied_is_not_taken_for_the_other(site: Site) -> None:
    await die(site, QUEUE, Message(b"\xfe", message_id="unreadable", user_id="gateway"))
    *_, first, copied = await site.letters()

    await site.dead("discard", copied["id"], "--yes", "--reason", "A copy.")

    shown = json.loads(await site.seen("show", "unreadable", "--json"))
    assert [item["id"] for item in shown["letters"]] == [first["id"]]


async def test_a_service_sees_its_own_letters_alone_and_one_that_is_away_is_named(
    site: Site,
) -> None:
    of_payments = {"payments": handlers(site.environment)["payments"]}
    operator = AnsweredOperators(site.environment, of_payments)

    status, out, err = await operator.run("dead", "list", "--json")
    unknown = await operator.run("dead", "show", COMMAND_ID, "--json")

    assert status == 1
    assert [one["queue"] for one in json.loads(out)["queues"]] == ["payments.commands.dead"]
    assert {line.split()[1] for line in err.splitlines()} == {"onboarding", "webhook_dispatcher"}
    assert (unknown.status, json.loads(unknown.out)) == (1, {"letters": []})


async def test_letters_are_listed_in_pages_and_one_is_replayed_by_its_id(site: Site) -> None:
    seen = [item["id"] for item in await site.letters()]
    pages, after = list[list[str]](), None
    while not pages or after is not None:
        page = await site.ask(
            LIST_DEAD_LETTERS, ListDeadLettersOf(service="onboarding", limit=2, after=after)
        )
        pages.append([letter.id for letter in page.items])
        after = page.next
    [first, *_, last] = seen
    replay = ReplayDeadLetterOf(letter_id=first, service="onboarding", reason="x")
    replayed = await site.ask(REPLAY_DEAD_LETTER, replay)

    assert [len(page) for page in pages] == [2, 1]
    assert sorted(letter_id for page in pages for letter_id in page) == sorted(seen)
    assert [letter.command_id for letter in replayed.removed] == [COMMAND_ID]
    with pytest.raises(NotFound):
        await site.ask(REPLAY_DEAD_LETTER, replay)
    unreadable = replay.model_copy(update={"letter_id": last})
    with pytest.raises(InvalidState):
        await site.ask(REPLAY_DEAD_LETTER, unreadable)
    await site.ask(DISCARD_DEAD_LETTER, unreadable)


async def test_an_event_is_listed_by_its_type_and_the_time_within_its_id_and_recorded_anew(
    site: Site,
) -> None:
    queue = events_queue("webhook_dispatcher")
    made_at = datetime.now(UTC) - timedelta(milliseconds=1)  # the ids have whole milliseconds
    good, forged = an_event("onboarding"), an_event("payments")
    await die(site, queue, good, forged)

    _, document, _ = await site.dead("list", "--json", "--queue", queue)
    _, table, _ = await site.dead("list", "--queue", queue)
    everything = ("--all", "--queue", queue, "--yes", "--json", "--reason", "x")
    status, out, _ = await site.dead("replay", *everything)

    letter, _ = json.loads(document)["queues"][0]["letters"]
    assert (message_id_of(letter), letter["event_type"]) == (good.message_id, "person.updated")
    assert letter["operation"] is None
    sent_at = datetime.fromisoformat(letter["sent_at"])
    assert made_at <= sent_at <= datetime.now(UTC)
    assert "person.updated" in table
    assert "cannot be read" not in table
    replayed = json.loads(out)
    assert status == 1
    assert [message_id_of(item) for item in replayed["replayed"]] == [good.message_id]
    assert [message_id_of(item) for item in replayed["left"]] == [forged.message_id]
    recorded = await site.recorded("webhook_dispatcher", "SELECT id FROM event")
    assert [f"evt_{event_id}" for event_id in recorded] == [good.message_id]
    [entry] = await site.recorded("webhook_dispatcher", "SELECT entry FROM audit")
    assert json.loads(entry)["letter_id"] == letter["id"]


def an_event(sender: str, body: bytes = b"{}") -> Message:
    headers: HeadersType = {"tenant": "t", "customer_id": "c", "resource_id": "r", "sequence": 1}
    event_id = f"evt_{uuid7()}"
    return Message(
        body, message_id=event_id, type="person.updated", user_id=sender, headers=headers
    )
