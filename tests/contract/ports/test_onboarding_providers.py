"""Onboarding's `IdentityProvider` and `CoreBanking`: what all providers behind the two ports do alike."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from libs.contracts.customers import Business, CustomerStatus, ExternalBankAccount
from libs.contracts.exact_json import decode
from libs.providers.outcomes import Absent, Accepted, NotSent, Outcome, Reason, Refused, Unknown
from libs.providers.writing import ProviderWrite
from services.onboarding.models import PersonDetails, Verification
from tests.contract.ports.onboarding_banks import Api, OnboardingBank
from tests.integration.onboarding.desk import address, bank_account, business, person
from tests.support.pace import pace

AnswerT = TypeVar("AnswerT")

APPROVED, CANCELED = CustomerStatus.APPROVED, CustomerStatus.CANCELED

Create = Callable[[OnboardingBank, UUID], Awaitable[ProviderWrite[object]]]


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
    """With one person."""
    write = bank.core.create_business(uuid4(), a_business(bank), [a_person(bank)], "idn_elsewhere")
    return (await done(write)).core_id


async def verify_business(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.identity.verify_business(our_id, a_business(bank), [a_person(bank)])


async def verify_person(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    customer_id, persons = uuid4(), [a_person(bank)]
    business = await done(bank.identity.verify_business(customer_id, a_business(bank), persons))
    return bank.identity.verify_person(our_id, customer_id, persons, 0, business.identity_id)


async def create_business(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    return bank.core.create_business(our_id, a_business(bank), [a_person(bank)], "idn_elsewhere")


async def create_person(bank: OnboardingBank, our_id: UUID) -> ProviderWrite[object]:
    customer_id, persons = uuid4(), [a_person(bank)]
    business = await done(
        bank.core.create_business(customer_id, a_business(bank), persons, "idn_elsewhere")
    )
    return bank.core.create_person(
        our_id, customer_id, persons, 0, business.core_id, "idn_of_the_person"
    )


each_business = pytest.mark.parametrize(
    ("api", "create"), [("identity", verify_business), ("core", create_business)]
)
each_person = pytest.mark.parametrize(
    ("api", "create"), [("identity", verify_person), ("core", create_person)]
)


@each_business
async def test_a_business_is_made_once_under_its_key_and_found_with_its_answer(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_made_once(onboarding_bank, api, create)


@each_person
async def test_a_person_is_made_once_under_its_key_and_found_with_its_answer(
    persons_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_made_once(persons_bank, api, create)


async def is_made_once(bank: OnboardingBank, api: Api, create: Create) -> None:
    our_id, key = uuid4(), uuid4()
    write = await create(bank, our_id)

    first = await send(write, key)
    again = await send(write, key)
    found = await write.find(key, soon())

    assert isinstance(first, Accepted)
    assert again == found == first
    assert await bank.records(api, our_id) == 1


@each_business
async def test_a_business_whose_answer_was_lost_is_unknown_until_it_is_found(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_unknown_until_found(onboarding_bank, api, create)


@each_person
async def test_a_person_whose_answer_was_lost_is_unknown_until_it_is_found(
    persons_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_unknown_until_found(persons_bank, api, create)


async def is_unknown_until_found(bank: OnboardingBank, api: Api, create: Create) -> None:
    our_id, key = uuid4(), uuid4()
    write = await create(bank, our_id)
    await bank.lose_next_answer(api)

    lost = await send(write, key)
    found = await write.find(key, soon())

    assert isinstance(lost, Unknown)
    assert lost.sent
    assert isinstance(found, Accepted)
    assert await bank.records(api, our_id) == 1


@each_business
async def test_a_business_that_was_not_sent_is_absent(
    onboarding_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_absent(onboarding_bank, api, create)


@each_person
async def test_a_person_that_was_not_sent_is_absent(
    persons_bank: OnboardingBank, api: Api, create: Create
) -> None:
    await is_absent(persons_bank, api, create)


async def is_absent(bank: OnboardingBank, api: Api, create: Create) -> None:
    our_id, key = uuid4(), uuid4()
    write = await create(bank, our_id)

    outcome = await write.send(key, time.time() - 1)
    found = await write.find(key, soon())

    assert isinstance(outcome, NotSent)
    assert found == Absent()
    assert write.finds_only_sends
    assert await bank.records(api, our_id) == 0


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

    others = [a_person(onboarding_bank)]
    of_business = await done(
        identity.verify_business(uuid4(), a_business(onboarding_bank, status), others)
    )
    customer_id, business = uuid4(), a_business(onboarding_bank)
    persons = [a_person(onboarding_bank, status)]
    employer = await done(identity.verify_business(customer_id, business, persons))
    of_person = await done(
        identity.verify_person(uuid4(), customer_id, persons, 0, employer.identity_id)
    )

    verdict = onboarding_bank.denial if status is CustomerStatus.DENIED else status
    assert (of_business.status, of_person.status) == (verdict, verdict)
    assert of_business.identity_id != of_person.identity_id


async def a_verified_business(bank: OnboardingBank) -> Verification:
    write = bank.identity.verify_business(uuid4(), a_business(bank), [a_person(bank)])
    return await done(write)


async def test_persons_of_a_business_have_identities_of_their_own(
    onboarding_bank: OnboardingBank,
) -> None:
    identity, customer_id = onboarding_bank.identity, uuid4()
    bob = {"first_name": "Bob", "date_of_birth": "1970-01-02", "ownership_percentage": 25}
    told: list[dict[str, Any]] = [
        {**bob},
        {**bob, "controller": False},
        {"ownership_percentage": 25},
        {"first_name": "Cid", "ownership_percentage": 10, "controller": False},
    ]
    persons = [
        PersonDetails.model_validate(
            person(tin=onboarding_bank.tax_number(APPROVED), **each),
        )
        for each in told
    ]
    business = await done(
        identity.verify_business(customer_id, a_business(onboarding_bank), persons)
    )

    verified = [
        await done(
            identity.verify_person(uuid4(), customer_id, persons, number, business.identity_id)
        )
        for number in range(len(persons))
    ]
    said = await identity.current(
        business.identity_id, [each.identity_id for each in reversed(verified)]
    )

    ids = [business.identity_id, *(each.identity_id for each in verified)]
    assert len(set(ids)) == len(ids)
    assert {each.identity_id: each.status for each in said} == dict.fromkeys(ids, APPROVED)


LONG = "x" * 255
LONG_ADDRESS = address(street_1=LONG, street_2=LONG, city=LONG)


@pytest.mark.parametrize("share", ["33." + "3" * 61, "1e-64", "1." + "1" * 58 + "e-64"])
async def test_no_value_that_validation_takes_is_too_long_for_a_provider(
    onboarding_bank: OnboardingBank, share: str
) -> None:
    identity, core, customer_id = onboarding_bank.identity, onboarding_bank.core, uuid4()
    named = {"first_name": LONG, "middle_name": LONG, "last_name": LONG, "work_title": LONG}
    told = Business.model_validate(
        business(
            ein=onboarding_bank.tax_number(APPROVED),
            business_name=LONG,
            business_address=LONG_ADDRESS,
        )
    )
    one = PersonDetails.model_validate(
        person(
            **named,
            tin=onboarding_bank.tax_number(APPROVED),
            home_address=LONG_ADDRESS,
            ownership_percentage=decode(share),
        )
    )

    verified = await done(identity.verify_business(customer_id, told, [one]))
    person_id, identity_id = uuid4(), verified.identity_id
    await done(identity.verify_person(person_id, customer_id, [one], 0, identity_id))
    made = await done(core.create_business(customer_id, told, [one], identity_id))
    changes = {"business_name": LONG + "y", "business_address": {**LONG_ADDRESS, "country": "US"}}
    await done(identity.update_business(identity_id, changes))
    await done(core.change_business(made.core_id, changes))


async def test_an_update_keeps_the_identity_and_its_status(
    onboarding_bank: OnboardingBank,
) -> None:
    identity = onboarding_bank.identity
    verified = await a_verified_business(onboarding_bank)

    updated = await done(
        identity.update_business(verified.identity_id, {"dba": "Acme", "website": None})
    )

    assert (updated.identity_id, updated.status) == (verified.identity_id, APPROVED)


async def test_a_canceled_identity_stays_canceled_and_is_not_changed(
    onboarding_bank: OnboardingBank,
) -> None:
    identity = onboarding_bank.identity
    verified = await a_verified_business(onboarding_bank)

    canceled = await done(identity.cancel_business(verified.identity_id))
    again = await done(identity.cancel_business(verified.identity_id))
    updated = await send(identity.update_business(verified.identity_id, {"dba": "Acme"}))

    assert (canceled.identity_id, canceled.status) == (verified.identity_id, CANCELED)
    assert canceled.version > verified.version or not onboarding_bank.numbers_versions
    assert again == canceled
    assert isinstance(updated, Refused)


async def test_what_a_provider_does_not_know_is_refused_or_undecided(
    onboarding_bank: OnboardingBank,
) -> None:
    identity, core = onboarding_bank.identity, onboarding_bank.core

    outcomes: list[Outcome[object]] = [
        await send(identity.update_business("idn_unknown", {"dba": "Acme"})),
        await send(identity.update_business("idn_unknown", {"email": "new@acme-tools.com"})),
        await send(identity.cancel_business("idn_unknown")),
        await send(core.change_business("cus_unknown", {"dba": "Acme"})),
        await send(core.close_business("cus_unknown")),
        await send(core.close_external_account("ext_unknown")),
        await send(core.open_account("cus_unknown", "Acme")),
    ]
    if onboarding_bank.knows_owners:
        outcomes += [await send(core.link_external_account("cus_unknown", an_external_account()))]

    if onboarding_bank.refuses_unknown_ids:
        reasons = [o.reason for o in outcomes if isinstance(o, Refused)]
        assert reasons == [Reason.PROVIDER_REFUSED] * len(outcomes)
    else:
        assert all(isinstance(outcome, Unknown) for outcome in outcomes)


async def test_a_core_customer_keeps_its_id_when_it_is_updated(
    onboarding_bank: OnboardingBank,
) -> None:
    core_id = await a_core_customer(onboarding_bank)

    updated = await done(onboarding_bank.core.change_business(core_id, {"dba": "Acme"}))

    assert updated.core_id == core_id


async def test_an_external_account_is_linked_once_until_it_is_closed(
    onboarding_bank: OnboardingBank,
) -> None:
    core, account = onboarding_bank.core, an_external_account()
    core_id = await a_core_customer(onboarding_bank)

    linked = await done(core.link_external_account(core_id, account))
    if onboarding_bank.knows_owners:
        again = await send(core.link_external_account(core_id, account))
        assert isinstance(again, Refused)
        assert again.reason is Reason.ALREADY_LINKED
    other = await done(core.link_external_account(core_id, an_external_account()))
    closed = await done(core.close_external_account(linked.external_account_id))
    anew = await done(core.link_external_account(core_id, account))

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

    closed = await done(core.close_business(core_id))
    again = await done(core.close_business(core_id))
    refused: list[Outcome[object]] = [
        await send(core.change_business(core_id, {"dba": "Acme"})),
        await send(core.open_account(core_id, "Acme Tools")),
    ]
    if onboarding_bank.knows_owners:
        refused += [await send(core.link_external_account(core_id, an_external_account()))]

    assert closed == again
    assert closed.status == "closed"
    assert all(isinstance(outcome, Refused) for outcome in refused)
