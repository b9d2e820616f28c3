"""Answers that onboarding stores, as reconciliation is told of them."""

from __future__ import annotations

from uuid import uuid4

import pytest

from libs.contracts import onboarding_operations as table
from libs.contracts.ids import parse_id
from libs.contracts.principal import SERVICE
from libs.contracts.reconciliation import FindByIds
from tests.integration.onboarding.desk import Desk, application

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(b'{"id":7}', id="envelope"),
        pytest.param(b'{"id":"c","to":"m","result":{"x":1}}', id="result"),
        pytest.param(
            b'{"id":"c","to":"m","result":{"data":{"external_bank_account_id":7}}}', id="data"
        ),
    ],
)
async def test_an_answer_that_cannot_be_read_keeps_no_other_from_being_compared(
    desk: Desk, stored: bytes
) -> None:
    unreadable, readable = [str(uuid4()) for _ in range(2)]
    for command_id in (unreadable, readable):
        await desk.onboard(application(), command_id=command_id)
    await desk.database.execute(
        "UPDATE onboarding.inbox SET reply = $1 WHERE command_id = $2",
        stored,
        parse_id(unreadable),
    )

    reply = await desk.ask(
        table.FIND_ANSWERED_COMMANDS, FindByIds(ids=[unreadable, readable]), SERVICE
    )

    assert [one["command_id"] for one in reply["data"]["answers"]] == [readable]
