"""Dead letters are replayed or discarded: what is asked before, what stays, and what is in the audit."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import msgspec
import pytest

from libs.cli import dead
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating.dead_letters import (
    LIST_DEAD_LETTERS,
    REPLAY_DEAD_LETTER,
    ListDeadLettersOf,
    ReplayDeadLetterOf,
)
from libs.handling.operating import letters
from libs.messaging import dead_letters
from libs.messaging.envelope import decode_command, encode
from tests.integration.dead_letters.site import (
    COMMAND_ID,
    FORGED_ID,
    QUEUE,
    Site,
    a_command,
    die,
    message_id_of,
)
from tests.support.waiting import eventually


async def test_replaying_takes_a_yes_and_what_was_named(site: Site) -> None:
    why = ("--reason", "It is mended.")
    unasked, _, question = await site.dead("replay", COMMAND_ID, *why)
    unknown, _, mistake = await site.dead("replay", "command-2", "--yes", *why)
    status, out, _ = await site.dead("replay", COMMAND_ID, "--yes", "--json", *why)

    assert (unasked, unknown, status) == (2, 2, 0)
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
