"""A broker or a database that is lost while letters are replayed or discarded."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from libs.contracts.errors import LOOK_BEFORE_REPEATING, BanksideError, OutcomePending, Unavailable
from libs.contracts.operating.dead_letters import (
    DISCARD_DEAD_LETTERS,
    REPLAY_DEAD_LETTER,
    REPLAY_DEAD_LETTERS,
    RemoveDeadLettersOf,
    ReplayDeadLetterOf,
)
from libs.handling.operating import letters
from libs.handling.operating.auditing import record
from libs.messaging.connection import Connection, connect
from tests.integration.dead_letters.site import COMMAND_ID, Site, of_all_letters


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
