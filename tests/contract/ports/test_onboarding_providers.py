"""Onboarding's `IdentityProvider` and `CoreBanking`: what all providers behind the two ports do alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID, uuid4

import pytest

from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount
from libs.providers.outcomes import Absent, Accepted, NotSent, Outcome, Reason, Refused, Unknown
from libs.providers.writing import ProviderWrite
from services.onboarding.models import PersonDetails
from tests.contract.ports.onboarding_banks import Api, OnboardingBank
from tests.integration.onboarding.desk import bank_account, business, person
from tests.support.pace import pace

AnswerT = TypeVar("AnswerT")

APPROVED, CANCELED = CustomerStatus.APPROVED, CustomerStatus.CANCELED

Create = Callable[[OnboardingBank, UUID], ProviderWrite[object]]


def soon() -> float:
    return time.time() + 10 * pace()


async def send(write: ProviderWrite[AnswerT], key: UUID | None = None) -> Outcome[AnswerT]:
    return await write.send(key or uuid4(), soon())


async def done(write: ProviderWrite[AnswerT]) -> AnswerT:
    """The answer to a write that is accepted."""
    outcome = await send(write)
    assert isinstance(outcome, Accepted), outcome
    return outcome.answer


def a_business(bank: OnboardingBank, status: CustomerStatus = APPROVED) -> Business:
    return Business.model_validate(business(ein=bank.tax_number(status)))


def a_person(bank: OnboardingBank, status: CustomerStatus = APPROVED) -> PersonDetails:
    return PersonDetails.model_validate(person(tin=bank.tax_number(status)))


def an_external_account() -> ExternalBankAccount:
    return ExternalBankAccount.model_validate(bank_account())


async def a_core_customer(bank: OnboardingBank) -> str:
    return (await done(bank.core.create_business(uuid4(), a_business(bank)))).core_id


def verify_business(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.identity.verify_business(our_id, a_business(bank))


def verify_person(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.identity.verify_person(our_id, uuid4(), a_person(bank))


def create_business(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.core.create_business(our_id, a_business(bank))


def create_person(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.core.create_person(our_id, uuid4(), a_person(bank))


each_create = pytest.mark.parametrize(
    ("api", "create"),
    [
        ("identity", verify_business),
        ("identity", verify_person),
        ("core", create_business),
        ("core", create_person),
    ],
)


@each_create
async def test_a_record_is_made_once_under_its_key_and_found_with_its_answer(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    our_id, key = uuid4(), uuid4()
    write = create(onboarding_bank, our_id)

    first = await send(write, key)
    again = await send(write, key)
    found = await write.find(key, soon())

    assert isinstance(first, Accepted)
    assert again == found == first
    assert await onboarding_bank.records(api, our_id) == 1


@each_create
async def test_a_record_whose_answer_was_lost_is_unknown_until_it_is_found(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    our_id, key = uuid4(), uuid4()
    write = create(onboarding_bank, our_id)
    await onboarding_bank.lose_next_answer(api)

    lost = await send(write, key)
    found = await write.find(key, soon())

    assert isinstance(lost, Unknown)
    assert lost.sent
    assert isinstance(found, Accepted)
    assert await onboarding_bank.records(api, our_id) == 1


@each_create
async def test_what_was_not_sent_is_absent(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    our_id, key = uuid4(), uuid4()
    write = create(onboarding_bank, our_id)

    outcome = await write.send(key, time.time() - 1)
    found = await write.find(key, soon())

    assert isinstance(outcome, NotSent)
    assert found == Absent()
    assert await onboarding_bank.records(api, our_id) == 0


@pytest.mark.parametrize(
    "status",
    [
        CustomerStatus.APPROVED,
        CustomerStatus.DENIED,
        CustomerStatus.PENDING_REVIEW,
        CustomerStatus.AWAITING_DOCUMENTS,
    ],
)
async def test_the_identity_provider_decides_about_businesses_and_persons(
    onboarding_bank: OnboardingBank, status: CustomerStatus
) -> None:
    identity = onboarding_bank.identity

    of_business = await done(identity.verify_business(uuid4(), a_business(onboarding_bank, status)))
    of_person = await done(
        identity.verify_person(uuid4(), uuid4(), a_person(onboarding_bank, status))
    )

    assert (of_business.status, of_person.status) == (status, status)
    assert of_business.identity_id != of_person.identity_id


async def test_an_update_keeps_the_identity_and_its_status(
    onboarding_bank: OnboardingBank,
) -> None:
    identity = onboarding_bank.identity
    verified = await done(identity.verify_business(uuid4(), a_business(onboarding_bank)))

    updated = await done(identity.update(verified.identity_id, {"dba": "Acme", "website": None}))

    assert (updated.identity_id, updated.status) == (verified.identity_id, APPROVED)


async def test_a_canceled_identity_stays_canceled_and_is_not_changed(
    onboarding_bank: OnboardingBank,
) -> None:
    identity = onboarding_bank.identity
    verified = await done(identity.verify_business(uuid4(), a_business(onboarding_bank)))

    canceled = await done(identity.cancel(verified.identity_id))
    again = await done(identity.cancel(verified.identity_id))
    updated = await send(identity.update(verified.identity_id, {"dba": "Acme"}))

    assert (canceled.identity_id, canceled.status) == (verified.identity_id, CANCELED)
    assert canceled.version > verified.version
    assert again == canceled
    assert isinstance(updated, Refused)


async def test_what_a_provider_does_not_know_is_refused(onboarding_bank: OnboardingBank) -> None:
    identity, core = onboarding_bank.identity, onboarding_bank.core

    outcomes = [
        await send(identity.update("idn_unknown", {"dba": "Acme"})),
        await send(identity.cancel("idn_unknown")),
        await send(core.update_customer("cus_unknown", {"dba": "Acme"})),
        await send(core.close_customer("cus_unknown")),
        await send(core.link_external_account("cus_unknown", an_external_account())),
        await send(core.close_external_account("ext_unknown")),
        await send(core.open_account("cus_unknown", "Acme")),
    ]

    assert [o.reason for o in outcomes if isinstance(o, Refused)] == [
        Reason.PROVIDER_REFUSED
    ] * len(outcomes)


async def test_a_core_customer_keeps_its_id_when_it_is_updated(
    onboarding_bank: OnboardingBank,
) -> None:
    core_id = await a_core_customer(onboarding_bank)

    updated = await done(onboarding_bank.core.update_customer(core_id, {"dba": "Acme"}))

    assert updated.core_id == core_id


async def test_an_external_account_is_linked_once_until_it_is_closed(
    onboarding_bank: OnboardingBank,
) -> None:
    core, account = onboarding_bank.core, an_external_account()
    core_id = await a_core_customer(onboarding_bank)

    linked = await done(core.link_external_account(core_id, account))
    again = await send(core.link_external_account(core_id, account))
    other = await done(core.link_external_account(core_id, an_external_account()))
    closed = await done(core.close_external_account(linked.external_account_id))
    anew = await done(core.link_external_account(core_id, account))

    assert isinstance(again, Refused)
    assert again.reason is Reason.ALREADY_LINKED
    assert closed.status == "closed"
    ids = {linked.external_account_id, other.external_account_id, anew.external_account_id}
    assert len(ids) == 3


async def test_every_key_opens_an_account_of_its_own(onboarding_bank: OnboardingBank) -> None:
    core_id = await a_core_customer(onboarding_bank)
    key = uuid4()
    write = onboarding_bank.core.open_account(core_id, "Acme Tools")

    first, again, other = await send(write, key), await send(write, key), await send(write)

    assert isinstance(first, Accepted)
    assert first.answer.account_number
    assert again == first
    assert other != first


async def test_a_closed_core_customer_is_given_nothing_more(
    onboarding_bank: OnboardingBank,
) -> None:
    core = onboarding_bank.core
    core_id = await a_core_customer(onboarding_bank)

    closed = await done(core.close_customer(core_id))
    again = await done(core.close_customer(core_id))
    refused = [
        await send(core.update_customer(core_id, {"dba": "Acme"})),
        await send(core.link_external_account(core_id, an_external_account())),
        await send(core.open_account(core_id, "Acme Tools")),
    ]

    assert closed == again
    assert closed.status == "closed"
    assert all(isinstance(outcome, Refused) for outcome in refused)
