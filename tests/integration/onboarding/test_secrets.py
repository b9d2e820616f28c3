"""What is sensitive stands in clear in no table, no queue, no event and no log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aio_pika
import asyncpg
import pytest_asyncio

from libs.contracts import onboarding_operations as table
from libs.contracts.customers import AddExternalBankAccount, UpdateBusiness, UpdatePerson
from libs.messaging.topology import COMMANDS
from tests.integration.onboarding.desk import (
    ONBOARDING_AND_BANK,
    Desk,
    application,
    bank_account,
    business,
    open_desk,
    person,
    tax_number,
)
from tests.support.infrastructure import Environment
from tests.support.stack import running_stack


@pytest_asyncio.fixture
async def own_desk(fresh_environment: Environment, tmp_path: Path) -> AsyncIterator[Desk]:
    async with (
        running_stack(
            fresh_environment, tmp_path, ONBOARDING_AND_BANK, BANKSIDE_LOG_LEVEL="DEBUG"
        ) as stack,
        open_desk(stack) as opened,
    ):
        yield opened


async def everything_in_the_schema(desk: Desk) -> str:
    """Every row of every table of onboarding, as text; bytes as text too."""
    connection: Any = await asyncpg.connect(desk.stack.environment.database_urls["onboarding"])
    try:
        names = await connection.fetch(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        )
        found = []
        for (name,) in names:
            for row in await connection.fetch(f'SELECT * FROM "{name}"'):
                values = (
                    v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v)
                    for v in row.values()
                )
                found.append(f"{name}: {' '.join(values)}")
        return "\n".join(found)
    finally:
        await connection.close()


async def test_canaries_are_seen_nowhere_but_at_the_bank(own_desk: Desk) -> None:
    desk = own_desk
    seen_on_the_wire: list[str] = []
    connection = await aio_pika.connect(desk.stack.environment.amqp_url)
    channel = await connection.channel()
    queue = await channel.declare_queue(exclusive=True)
    for operation in table.OPERATIONS:
        await queue.bind(COMMANDS, routing_key=operation.name)

    async def collect(message: aio_pika.abc.AbstractIncomingMessage) -> None:
        seen_on_the_wire.append(message.body.decode())

    await queue.consume(collect, no_ack=True)
    numbers = {name: tax_number() for name in ("ein", "new_ein", "tin", "new_tin")}
    accounts = {"account": "7310528846", "second": "64190338271"}
    born, born_really = "1961-07-23", "1961-07-24"
    await desk.fault("core", "open_account", "fail_after_success", times=1)

    result = await desk.onboard(
        application(
            business=business(ein=numbers["ein"]),
            persons=[person(tin=numbers["tin"], date_of_birth=born)],
            external_bank_account=bank_account(account_number=accounts["account"]),
        )
    )
    customer_id = result["business"]["customer_id"]
    await desk.send(
        table.UPDATE_BUSINESS,
        UpdateBusiness.model_validate(
            {"customer_id": customer_id, "business": {"ein": numbers["new_ein"]}}
        ),
    )
    await desk.fault("core", "update_customer", "error", times=1)
    await desk.send(
        table.UPDATE_PERSON,
        UpdatePerson.model_validate(
            {
                "person_id": result["persons"][0]["customer_id"],
                "tin": numbers["new_tin"],
                "date_of_birth": born_really,
            }
        ),
    )
    known = result["external_bank_account"]["external_bank_account_id"]
    await desk.send(
        table.ADD_EXTERNAL_BANK_ACCOUNT,
        AddExternalBankAccount.model_validate(
            {
                "external_bank_account_id": known,
                "external_bank_account": bank_account(account_number=accounts["second"]),
            }
        ),
    )
    await desk.until_quiet()
    in_the_middle = await everything_in_the_schema(desk)
    await connection.close()

    canaries = [*numbers.values(), *accounts.values(), born, born_really]
    assert len(seen_on_the_wire) == 4
    places = {
        "tables": in_the_middle,
        "commands": "\n".join(seen_on_the_wire),
        "events": "\n".join(event["raw"] for event in desk.events),
        "log": desk.stack.log("onboarding"),
    }
    found = [(c, place) for c in canaries for place, text in places.items() if c in text]
    assert found == []
    assert numbers["new_tin"] in str(await desk.bank("GET", "/truth/customers")), "the bank has it"


async def test_an_open_commands_body_is_sealed_in_the_inbox(own_desk: Desk) -> None:
    desk = own_desk
    ein = tax_number()
    await desk.fault("core", "*", "error")

    waiting = asyncio.create_task(
        desk.onboard(application(business=business(ein=ein)), wait_seconds=5)
    )
    await asyncio.wait({waiting})

    rows = await everything_in_the_schema(desk)
    assert "onboarding.onboard_customer" in rows
    assert ein not in rows
    assert waiting.exception() is not None
