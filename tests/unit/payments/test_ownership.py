"""Asking onboarding whose the accounts of a wire are."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from libs.contracts.errors import (
    ExternalAccountNotLinked,
    InternalError,
    InvalidState,
    NotFound,
    ProviderError,
    ProviderTimeout,
    Unavailable,
)
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.contracts.ownership import FindAccountOwner, FindExternalAccount
from libs.contracts.principal import Family, Principal
from libs.runtime.asking import Asking
from services.payments.adapters.ownership import OnboardingOwnership

MINE = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_1", "c_1")
OTHER = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_2", "c_2")


@dataclass
class Onboarding:
    """Everything belongs to `c_1`."""

    known: set[str] = field(default_factory=lambda: {"acc_1", "ext_1"})
    failure: Exception | None = None
    reply: Any = None
    """In place of the right one."""
    asked: Counter[str] = field(default_factory=Counter)

    async def query(
        self, operation: Operation, principal: Principal, command: Command, deadline: float
    ) -> Any:
        self.asked[operation.name] += 1
        if self.failure is not None:
            raise self.failure
        if self.reply is not None:
            return self.reply
        match command:
            case (
                FindAccountOwner(account_id=found) | FindExternalAccount(external_account_id=found)
            ):
                if principal != MINE or found not in self.known:
                    raise NotFound
                name = next(iter(type(command).model_fields))
                return {"data": {name: found, "customer_id": "c_1"}}
            case _:
                raise AssertionError(operation.name)


def ownership(onboarding: Onboarding) -> OnboardingOwnership:
    return OnboardingOwnership(Asking(onboarding, patience_seconds=1), remembered=10)


async def test_what_is_ones_own_is_asked_once_and_remembered_for_its_owner_alone() -> None:
    onboarding = Onboarding()
    asked = ownership(onboarding)
    deadline = time.time() + 5

    for _ in range(2):
        await asked.require_account(MINE, "acc_1", deadline)
        await asked.require_external_account(MINE, "ext_1", deadline)

    assert set(onboarding.asked.values()) == {1}
    with pytest.raises(NotFound):
        await asked.require_account(OTHER, "acc_1", deadline)
    with pytest.raises(ExternalAccountNotLinked):
        await asked.require_external_account(OTHER, "ext_1", deadline)


async def test_what_is_not_linked_now_may_be_in_a_moment() -> None:
    onboarding = Onboarding(known=set())
    asked = ownership(onboarding)
    with pytest.raises(ExternalAccountNotLinked):
        await asked.require_external_account(MINE, "ext_1", time.time() + 5)
    onboarding.known.add("ext_1")

    await asked.require_external_account(MINE, "ext_1", time.time() + 5)


@pytest.mark.parametrize(
    "failure", [Unavailable(), ProviderTimeout(), ProviderError(), InternalError()]
)
async def test_an_onboarding_that_cannot_tell_is_unavailable(failure: Exception) -> None:
    asked = ownership(Onboarding(failure=failure))

    with pytest.raises(Unavailable):
        await asked.require_account(MINE, "acc_1", time.time() + 5)
    with pytest.raises(Unavailable):
        await asked.require_external_account(MINE, "ext_1", time.time() + 5)


async def test_a_reply_that_makes_no_sense_is_unavailable() -> None:
    asked = ownership(Onboarding(reply={"data": {"owner": "c_1"}}))

    with pytest.raises(Unavailable):
        await asked.require_account(MINE, "acc_1", time.time() + 5)


async def test_a_no_to_what_was_asked_is_told_as_it_is() -> None:
    asked = ownership(Onboarding(failure=InvalidState()))

    with pytest.raises(InvalidState):
        await asked.require_account(MINE, "acc_1", time.time() + 5)
