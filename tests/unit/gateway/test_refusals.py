"""How refused requests are counted for the audit, when there are very many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from libs.contracts.errors import InsufficientScope, InvalidSignature, UnknownSubscriptionKey
from libs.contracts.principal import Family, Principal
from libs.persistence import audit
from libs.persistence.audit import Entry
from libs.persistence.engine import Database
from services.gateway.refusals import AUTHENTICATION, GROUPS, SEVERAL, Refusals


class Databases:
    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        yield


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    entries: list[Entry] = []

    async def append(_: Any, appended: list[Entry]) -> None:
        entries.extend(appended)

    monkeypatch.setattr(audit, "append", append)
    return entries


@pytest.fixture
def refusals() -> Refusals:
    return Refusals(cast("Database", Databases()))


def told(entries: list[Entry]) -> set[tuple[str | None, str, str, Any]]:
    return {
        (entry.address, entry.actor, entry.action, (entry.subject or {})["count"])
        for entry in entries
    }


async def test_one_key_of_many_refusals_hides_neither_itself_nor_an_operator(
    refusals: Refusals, written: list[Entry]
) -> None:
    partner = Principal("tnt_1", "Acme", Family.PARTNER, "sub_1")
    operator = Principal("", "", Family.OPERATOR, "sub_2", operator="ada")
    for number in range(GROUPS + 25):
        refusals.known(InsufficientScope(), f"192.0.2.{number}", partner, "payments.send_wire")
    refusals.known(InsufficientScope(), "198.51.100.1", operator, "payments.list")

    await refusals.write()
    await refusals.write()

    assert len(written) == GROUPS + 2, "what was written is not written again"
    assert {
        (None, "sub_1", SEVERAL, 25),
        ("198.51.100.1", "operator:ada", "payments.list", 1),
    } <= told(written)


async def test_however_many_are_refused_the_rows_are_bounded_and_none_is_left_out(
    refusals: Refusals, written: list[Entry]
) -> None:
    for number in range(5 * GROUPS):
        refusals.stranger(InvalidSignature(), "192.0.2.1", f"sub_{number}")
        refusals.stranger(UnknownSubscriptionKey(), f"address {number}", "guessed")

    await refusals.write()

    assert len(written) <= 2 * GROUPS + 2
    assert sum(count for *_, count in told(written)) == 10 * GROUPS
    assert {action for _, _, action, _ in told(written)} == {AUTHENTICATION, SEVERAL}
