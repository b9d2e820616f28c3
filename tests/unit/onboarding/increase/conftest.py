"""Increase's fake in this process, with the adapters of both roles, which share the entities there."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from libs.contracts.customers import Business
from libs.providers.increase.capabilities import WRITES
from libs.providers.increase.client import IncreaseClient
from libs.providers.outcomes import Accepted
from libs.providers.sessions import open_session
from libs.providers.writing import ProviderWrite
from services.onboarding.adapters.increase.core import IncreaseCoreBanking
from services.onboarding.adapters.increase.identity import IncreaseIdentityProvider
from services.onboarding.models import PersonDetails
from services.onboarding.ports import KnownPerson
from tests.integration.onboarding.desk import business, person
from tests.support.increase_bank.faults import FaultKind, FaultRule
from tests.support.increase_bank.server import RunningBank, running_bank
from tests.support.increase_bank.shapes import Json
from tests.support.pace import pace

KEY = "a-key-that-may-all"

AnswerT = TypeVar("AnswerT")


def soon() -> float:
    return time.time() + 10 * pace()


def a_person(**changes: Any) -> PersonDetails:
    return PersonDetails.model_validate(person(**changes))


async def done(write: ProviderWrite[AnswerT]) -> AnswerT:
    outcome = await write.send(uuid4(), soon())
    assert isinstance(outcome, Accepted), outcome
    return outcome.answer


@dataclass
class Increase:
    running: RunningBank
    client: IncreaseClient

    def __post_init__(self) -> None:
        self.identity = IncreaseIdentityProvider(self.client, WRITES)
        self.core = IncreaseCoreBanking(self.client, WRITES, is_identity=True, program_id=None)

    def objects(self, kind: str) -> list[Json]:
        rows = self.running.bank.store.rows(
            "SELECT body FROM object WHERE kind = ? ORDER BY seq", (kind,)
        )
        return [json.loads(row[0]) for row in rows]

    def fault(self, operation: str, kind: FaultKind) -> None:
        self.running.bank.faults.put(FaultRule(operation=operation, kind=kind, times=1))

    def decide(self, entity_id: str, *issues: Json, **changes: Any) -> None:
        store = self.running.bank.store
        entity = store.get("entity", entity_id) | changes
        status = "invalid" if issues else "valid"
        entity["validation"] = {"status": status, "issues": list(issues)}
        with store.writing():
            store.save(entity)

    async def verified(self, persons: Sequence[PersonDetails]) -> tuple[str, list[KnownPerson]]:
        """The entity of a business, and its persons at Increase."""
        customer_id, ours = uuid4(), [uuid4() for _ in persons]
        told = Business.model_validate(business())
        made = await done(self.identity.verify_business(customer_id, told, persons))
        known = [
            KnownPerson(
                our_id,
                await self._identity_of(our_id, persons, number, made.identity_id),
                made.identity_id,
            )
            for number, our_id in enumerate(ours)
        ]
        return made.identity_id, known

    async def _identity_of(
        self, our_id: UUID, persons: Sequence[PersonDetails], number: int, entity_id: str
    ) -> str:
        write = self.identity.verify_person(our_id, uuid4(), persons, number, entity_id)
        return (await done(write)).identity_id


@pytest.fixture
async def increase(tmp_path: Path) -> AsyncIterator[Increase]:
    async with (
        running_bank(tmp_path, {KEY: "everything"}) as running,
        open_session(8) as session,
    ):
        yield Increase(running, IncreaseClient("core", running.url, KEY, session))
        assert not running.bank.violations
