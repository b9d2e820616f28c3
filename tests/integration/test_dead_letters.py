"""`bankside dead` with the handlers of the services, on a real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import aio_pika
import asyncpg
import msgspec
import pytest
import pytest_asyncio
from aio_pika import Message
from aio_pika.abc import HeadersType
from structlog.testing import capture_logs
from uuid_utils import uuid7

from libs.cli import dead
from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    BanksideError,
    InvalidState,
    NotFound,
    OutcomePending,
    Unavailable,
)
from libs.contracts.model import Command
from libs.contracts.operating.dead_letters import (
    DISCARD_DEAD_LETTER,
    DISCARD_DEAD_LETTERS,
    LIST_DEAD_LETTERS,
    REPLAY_DEAD_LETTER,
    REPLAY_DEAD_LETTERS,
    ListDeadLettersOf,
    RemoveDeadLettersOf,
    ReplayDeadLetterOf,
    ReplayDeadLettersOf,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.handling.operating import letters
from libs.handling.operating.auditing import record
from libs.handling.operating.letters import AcceptAnew, OwnLetters
from libs.handling.operating.serving import operating_handlers
from libs.handling.queries import QueryHandler
from libs.messaging import dead_letters
from libs.messaging.connection import Connection, connect
from libs.messaging.envelope import Envelope, decode_command, encode
from libs.messaging.queue_depths import ready_messages
from libs.messaging.topology import declare_events, events_queue
from libs.persistence.engine import Database
from libs.persistence.sealing import LookupKeys
from services.onboarding import replaying as onboarding
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.payments import replaying as payments
from services.webhook_dispatcher import replaying as webhook_dispatcher
from services.webhook_dispatcher.app import in_order_of_subscription
from tests.support.answered_operators import AnsweredOperators, HandlersOf
from tests.support.command_line import Finished
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of, storage_of
from tests.support.pace import pace
from tests.support.queues import declare_service, next_in
from tests.support.waiting import eventually

QUEUE = "onboarding.commands"
COMMAND_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d01"
FORGED_ID = "5a9cf8a8-5a0e-4b6c-9d2c-6e7a2f6f6d02"


@dataclass(frozen=True)
class Site:
    """A broker on which a command, a forged one and something that is none have died, and onboarding's database."""

    environment: Environment
    operator: AnsweredOperators

    @property
    def broker(self) -> str:
        """The administrator's URL."""
        return self.environment.amqp_url

    async def dead(self, *arguments: str) -> Finished:
        return await self.operator.run("dead", *arguments)

    async def ask(self, operation: Operation, command: Command) -> Any:
        return (await self.operator.call(operation, command)).data

    async def seen(self, *arguments: str) -> str:
        """What is printed once the letters are back that an earlier look had taken: that takes the broker a moment."""
        printed = ""

        async def are_back() -> bool:
            nonlocal printed
            status, printed, _ = await self.dead(*arguments)
            return status == 0 and f"{QUEUE}.dead: none" not in printed

        await eventually("the letters are back", are_back)
        return printed

    async def letters(self) -> list[dict[str, Any]]:
        status, out, _ = await self.dead("list", "--json", "--queue", QUEUE)
        assert status == 0
        listed: list[dict[str, Any]] = json.loads(out)["queues"][0]["letters"]
        return listed

    async def recorded(self, service: str, statement: str) -> list[Any]:
        connection = await asyncpg.connect(self.environment.database_urls[service])
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()


def a_command(
    command_id: str,
    sender: str,
    operation: str = "onboarding.update_business",
    body_hash: str | None = None,
) -> Message:
    envelope = Envelope(
        id=command_id,
        message_id=str(uuid7()),
        request_id="request",
        operation=operation,
        principal=Principal("tenant", "Tenant", Family.PARTNER, "sub_test"),
        deadline=0.0,
        body=msgspec.Raw(b'{"customer_id":"c-1"}'),
        body_hash=body_hash,
    )
    return Message(encode(envelope), message_id=envelope.message_id, user_id=sender)


async def die(site: Site, queue_name: str, *messages: Message) -> None:
    connection = await aio_pika.connect(site.broker)
    async with connection, connection.channel() as channel:
        for message in messages:
            await channel.default_exchange.publish(message, queue_name)
        queue = await channel.get_queue(queue_name)
        for _ in messages:
            await (await next_in(queue)).reject(requeue=False)
        async with asyncio.timeout(10 * pace()):
            while await ready_messages(channel, f"{queue_name}.dead") < len(messages):
                await asyncio.sleep(0.02)


def handlers(environment: Environment) -> dict[str, HandlersOf]:
    secrets = environment.secrets

    def own(service: str, accept: Mapping[str, AcceptAnew]) -> OwnLetters:
        return OwnLetters(environment.amqp_urls[service], None, accept)

    def of_onboarding(database: Database) -> dict[str, QueryHandler]:
        lookup = LookupKeys(secrets.lookup_keys["onboarding"])
        store = Store(Vault(storage_of(secrets, "onboarding"), lookup))
        accept = onboarding.accept_anew(
            "onboarding", database, store, sealer_of(secrets, "onboarding")
        )
        return operating_handlers("onboarding", database, letters=own("onboarding", accept))

    def of_payments(database: Database) -> dict[str, QueryHandler]:
        accept = payments.accept_anew("payments", database, sealer_of(secrets, "payments"))
        return operating_handlers("payments", database, letters=own("payments", accept))

    def of_dispatcher(database: Database) -> dict[str, QueryHandler]:
        service = "webhook_dispatcher"
        accept = webhook_dispatcher.accept_anew(
            service,
            database,
            sealer_of(secrets, service),
            ordering=in_order_of_subscription,
            retention=timedelta(days=30),
            clock=lambda: datetime.now(UTC),
        )
        return operating_handlers(service, database, letters=own(service, accept))

    return {
        "onboarding": of_onboarding,
        "payments": of_payments,
        "webhook_dispatcher": of_dispatcher,
    }


@pytest_asyncio.fixture
async def site(fresh_environment: Environment) -> Site:
    operator = AnsweredOperators(fresh_environment, handlers(fresh_environment))
    made = Site(fresh_environment, operator)
    connection = await aio_pika.connect(made.broker)
    async with connection, connection.channel() as channel:
        for service in ("onboarding", "payments", "webhook_dispatcher"):
            await declare_service(channel, service)
        await declare_events(channel, "webhook_dispatcher")
    await die(
        made,
        QUEUE,
        a_command(COMMAND_ID, "gateway"),
        a_command(FORGED_ID, "ledger_read"),
        Message(b"\xff", message_id="unreadable", user_id="gateway"),
    )
    return made


def message_id_of(letter: Mapping[str, Any]) -> str:
    """The id of a letter has a digest besides."""
    return str(letter["id"]).rpartition("-")[0]


async def test_a_letter_whose_message_id_was_copied_is_not_taken_for_the_other(site: Site) -> None:
    await die(site, QUEUE, Message(b"\xfe", message_id="unreadable", user_id="gateway"))
    *_, first, copied = await site.letters()

    await site.dead("discard", copied["id"], "--yes", "--reason", "A copy.")

    shown = json.loads(await site.seen("show", "unreadable", "--json"))
    assert [item["id"] for item in shown["letters"]] == [first["id"]]


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


async def test_replaying_takes_a_yes_and_what_was_named(site: Site) -> None:
    why = ("--reason", "It is mended.")
    nobody, _, question = await site.dead("replay", COMMAND_ID, *why)
    unknown, _, mistake = await site.dead("replay", "command-2", "--yes", *why)
    status, out, _ = await site.dead("replay", COMMAND_ID, "--yes", "--json", *why)

    assert (nobody, unknown, status) == (2, 2, 0)
    assert "--yes" in question
    assert "command-2" in mistake
    assert [item["command_id"] for item in json.loads(out)["replayed"]] == [COMMAND_ID]
    assert [message_id_of(item) for item in await site.letters()][1:] == ["unreadable"]
    inbox = await site.recorded("onboarding", "SELECT command_id FROM inbox WHERE keep_for_ever")
    assert [str(command_id) for command_id in inbox] == [COMMAND_ID]
    (entry,) = await site.recorded("onboarding", "SELECT entry FROM audit")
    audited = json.loads(entry)
    assert (audited["actor"], audited["action"]) == ("operator:grace", "dead.replay")
    assert (audited["command_id"], audited["reason"]) == (COMMAND_ID, "It is mended.")


async def test_a_letter_whose_replay_cannot_be_audited_is_not_accepted(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise ConnectionError

    [letter, *_] = await site.letters()
    replay = ReplayDeadLetterOf(letter_id=letter["id"], service="onboarding", reason="x")
    monkeypatch.setattr("libs.handling.operating.letters.record", fail)

    with pytest.raises(BanksideError):
        await site.ask(REPLAY_DEAD_LETTER, replay)

    assert await site.recorded("onboarding", "SELECT command_id FROM inbox") == []


async def test_a_broker_that_is_lost_before_a_letter_is_carried_out_leaves_the_letters(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError

    replay = await of_all_letters(site)
    monkeypatch.setattr("libs.messaging.dead_letters.connect", refuse)

    with pytest.raises(Unavailable) as refusal:
        await site.ask(REPLAY_DEAD_LETTERS, replay)

    assert refusal.value.detail == letters.THEY_STAY


async def test_a_broker_that_is_lost_as_a_letter_is_carried_out_leaves_its_outcome_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Connection] = []

    async def connect_and_keep(*arguments: Any, **named: Any) -> Connection:
        opened.append(await connect(*arguments, **named))
        return opened[-1]

    async def record_and_lose(*arguments: Any, **named: Any) -> None:
        await record(*arguments, **named)
        await opened[-1].end(politely=False)

    replay = await of_all_letters(site)
    monkeypatch.setattr("libs.messaging.dead_letters.connect", connect_and_keep)
    monkeypatch.setattr("libs.handling.operating.letters.record", record_and_lose)

    with pytest.raises(OutcomePending) as pending:
        await site.ask(REPLAY_DEAD_LETTERS, replay)

    assert pending.value.detail == LOOK_BEFORE_REPEATING
    inbox = await site.recorded("onboarding", "SELECT command_id FROM inbox")
    assert [str(command_id) for command_id in inbox] == [COMMAND_ID]


@pytest.mark.parametrize("of_database", [ConnectionError(), TimeoutError()])
async def test_a_database_that_is_lost_amid_letters_leaves_their_outcome_open(
    site: Site, monkeypatch: pytest.MonkeyPatch, of_database: Exception
) -> None:
    recorded: list[str] = []

    async def record_one(*arguments: Any, letter_id: str, **named: Any) -> None:
        if recorded:
            raise of_database
        await record(*arguments, letter_id=letter_id, **named)
        recorded.append(letter_id)

    discard = RemoveDeadLettersOf(
        **(await of_all_letters(site)).model_dump(exclude={"apply_again"})
    )
    monkeypatch.setattr("libs.handling.operating.letters.record", record_one)

    with capture_logs() as logs, pytest.raises(OutcomePending) as pending:
        await site.ask(DISCARD_DEAD_LETTERS, discard)

    assert pending.value.detail == LOOK_BEFORE_REPEATING
    assert len(await site.recorded("onboarding", "SELECT entry FROM audit")) == 1
    assert "broker_unreachable" not in [line["event"] for line in logs]


async def of_all_letters(site: Site) -> ReplayDeadLettersOf:
    ids = [letter["id"] for letter in await site.letters()]
    return ReplayDeadLettersOf(letter_ids=ids, service="onboarding", reason="x")


async def test_a_command_that_may_be_forgotten_by_now_is_carried_out_only_when_that_is_said(
    site: Site,
) -> None:
    replay = await an_old_letter(site, str(uuid4()))
    with pytest.raises(InvalidState) as refusal:
        await site.ask(REPLAY_DEAD_LETTER, replay)
    assert "apply_again" in refusal.value.detail
    assert await site.recorded("payments", "SELECT command_id FROM inbox") == []

    again = replay.model_copy(update={"apply_again": True})
    await eventually("the letter is back", partial(replayed, site, again))

    assert await site.recorded("payments", "SELECT finished_at FROM inbox") == [None]


async def test_an_old_letter_of_a_command_that_is_known_has_no_effect(site: Site) -> None:
    command_id = str(uuid4())
    replay = await an_old_letter(site, command_id)
    await site.recorded("payments", _FINISHED.format(command_id))

    await eventually("the letter is back", partial(replayed, site, replay))

    [finished_at] = await site.recorded("payments", "SELECT finished_at FROM inbox")
    assert finished_at is not None


async def test_a_letter_is_not_told_as_accepted_where_another_request_has_its_key(
    site: Site,
) -> None:
    command_id = str(uuid4())
    await die(site, "payments.commands", a_command(command_id, "gateway", "payments.cancel_wire"))
    [letter] = (await site.ask(LIST_DEAD_LETTERS, ListDeadLettersOf(service="payments"))).items
    await site.recorded("payments", _FINISHED.format(command_id))
    await site.recorded("payments", "UPDATE inbox SET body_hash = 'of another body'")
    replay = ReplayDeadLetterOf(letter_id=letter.id, service="payments", reason="x")

    async def is_refused() -> bool:
        """Once the letter is back in its queue."""
        try:
            await site.ask(REPLAY_DEAD_LETTER, replay)
        except NotFound:
            return False
        except InvalidState as refusal:
            return "another request" in refusal.detail
        pytest.fail("it was told as accepted")

    await eventually("the replay is refused", is_refused)

    assert await site.recorded("payments", "SELECT entry FROM audit") == []


async def test_a_letter_whose_command_was_forgotten_has_no_effect_and_goes(site: Site) -> None:
    """Its caller was told that nothing was started; the body's hash is forgotten, too."""
    command_id = str(uuid4())
    message = a_command(command_id, "gateway", "payments.cancel_wire", body_hash="of the body")
    await die(site, "payments.commands", message)
    [letter] = (await site.ask(LIST_DEAD_LETTERS, ListDeadLettersOf(service="payments"))).items
    await site.recorded("payments", _FINISHED.format(command_id))
    forget = "UPDATE inbox SET forgotten = true, message_id = '{}'"
    await site.recorded("payments", forget.format(message.message_id))
    replay = ReplayDeadLetterOf(letter_id=letter.id, service="payments", reason="x")

    await eventually("the letter is back", partial(replayed, site, replay))

    assert await site.recorded("payments", "SELECT forgotten FROM inbox") == [True]


_FINISHED = (
    "INSERT INTO inbox (command_id, operation, message_id, request_id, principal, body, deadline, finished_at)"
    " VALUES ('{}', 'payments.cancel_wire', 'another', 'r', '', '', 0, now() - interval '25 hours')"
)


async def an_old_letter(site: Site, command_id: str) -> ReplayDeadLetterOf:
    """Of a command that was sent 25 hours ago; what replays it."""
    old = a_command(command_id, "gateway", "payments.cancel_wire")
    old.timestamp = datetime.now(UTC) - timedelta(hours=25)
    await die(site, "payments.commands", old)
    [letter] = (await site.ask(LIST_DEAD_LETTERS, ListDeadLettersOf(service="payments"))).items
    return ReplayDeadLetterOf(letter_id=letter.id, service="payments", reason="x")


async def replayed(site: Site, replay: ReplayDeadLetterOf) -> bool:
    """Once the letter is back in its queue, of which an earlier look had taken it."""
    with suppress(NotFound):
        await site.ask(REPLAY_DEAD_LETTER, replay)
        return True
    return False


async def test_a_letter_that_is_discarded_is_gone_and_in_the_audit(site: Site) -> None:
    why = ("--reason", "Nonsense.")
    unreadable = (await site.letters())[-1]["id"]
    unsaid, _, _ = await site.dead("discard", "--yes", *why)
    unasked, _, question = await site.dead("discard", unreadable, *why)
    status, out, _ = await site.dead("discard", unreadable, "--yes", "--json", *why)
    again, _, mistake = await site.dead("discard", unreadable, "--yes", *why)

    assert (unsaid, unasked, status, again) == (2, 2, 0, 2)
    assert "--yes" in question
    assert unreadable in mistake
    assert [item["id"] for item in json.loads(out)["discarded"]] == [unreadable]
    assert [item["command_id"] for item in await site.letters()] == [COMMAND_ID, FORGED_ID]
    assert await site.recorded("onboarding", "SELECT command_id FROM inbox") == []
    (entry,) = await site.recorded("onboarding", "SELECT entry FROM audit")
    audited = json.loads(entry)
    assert (audited["actor"], audited["action"]) == ("operator:grace", "dead.discard")
    assert (audited["letter_id"], audited["reason"]) == (unreadable, "Nonsense.")


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


async def test_what_no_allowed_sender_sent_and_what_cannot_be_read_stays(site: Site) -> None:
    status, out, _ = await site.dead("replay", "--all", "--yes", "--json", "--reason", "x")

    left = {message_id_of(item): item["because"] for item in json.loads(out)["left"]}
    assert status == 1
    assert "this release cannot read it" in left["unreadable"]
    assert any("ledger_read may not send" in because for because in left.values())
    assert [item["command_id"] for item in await site.letters()] == [FORGED_ID, None]
    inbox = await site.recorded("onboarding", "SELECT command_id FROM inbox")
    assert [str(command_id) for command_id in inbox] == [COMMAND_ID]


@pytest.mark.parametrize("never", [{"id": "no-uuid"}, {"request_id": "\0"}])
async def test_a_letter_that_can_never_be_recorded_stays_and_is_told_as_that(
    site: Site, never: dict[str, str]
) -> None:
    message = a_command(str(uuid4()), "gateway", "payments.cancel_wire")
    message.body = encode(msgspec.structs.replace(decode_command(message.body), **never))
    await die(site, "payments.commands", message)

    everything = ("--all", "--queue", "payments.commands", "--yes", "--json", "--reason", "x")
    status, out, _ = await site.dead("replay", *everything)

    [left] = json.loads(out)["left"]
    assert status == 1
    assert "it can never be recorded" in left["because"]


async def test_more_letters_than_are_looked_at_once_are_replayed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [str(uuid4()) for _ in range(4)]
    await die(site, QUEUE, *(a_command(command_id, "gateway") for command_id in more))
    monkeypatch.setattr(dead, "MAX_SHOWN", 3)
    for module in (letters, dead_letters):
        monkeypatch.setattr(module, "MAX_LOOKED_AT", 3)

    everything = ("--all", "--queue", QUEUE, "--yes", "--json", "--reason", "x")
    status, out, _ = await site.dead("replay", *everything)

    done = json.loads(out)
    assert status == 1
    assert {item["command_id"] for item in done["replayed"]} == {COMMAND_ID, *more}
    assert len(done["left"]) == 2


def an_event(sender: str, body: bytes = b"{}") -> Message:
    headers: HeadersType = {"tenant": "t", "customer_id": "c", "resource_id": "r", "sequence": 1}
    event_id = f"evt_{uuid7()}"
    return Message(
        body, message_id=event_id, type="person.updated", user_id=sender, headers=headers
    )


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
