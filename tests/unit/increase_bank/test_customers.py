"""Entities, owners, accounts and their numbers."""

from __future__ import annotations

import pytest
from increase import AsyncIncrease, InvalidOperationError, InvalidParametersError, NotFoundError

from tests.support.increase_bank.server import RunningBank
from tests.support.increase_clients import (
    ADDRESS,
    Fields,
    fund,
    link_external,
    make_entity,
    open_account,
    owner,
)
from tests.support.waiting import eventually


async def test_an_entity_is_valid_and_shows_its_owners_without_their_numbers(
    increase: AsyncIncrease,
) -> None:
    entity = await make_entity(increase)

    assert entity.validation is not None
    assert (entity.status, entity.validation.status) == ("active", "valid")
    assert entity.corporation is not None
    (listed,) = entity.corporation.beneficial_owners
    found = await increase.beneficial_owners.list(entity_id=entity.id)
    assert [item.id for item in found.data] == [listed.id]
    assert found.data[0].individual.identification is not None
    assert found.data[0].individual.identification.number_last4 == "1120"
    assert "078051120" not in found.data[0].model_dump_json()


@pytest.mark.parametrize(
    ("corporation", "status", "issues"),
    [
        ({"legal_identifier": {"value": "602210003"}}, "invalid", ["entity_tax_identifier"]),
        ({"legal_identifier": {"value": "602210002"}}, "pending", []),
        ({"address": ADDRESS | {"line1": "PO Box 7"}}, "invalid", ["entity_address"]),
        ({"beneficial_owners": [owner("078050003")]}, "invalid", ["beneficial_owner_identity"]),
    ],
)
async def test_numbers_and_addresses_decide_the_validation(
    increase: AsyncIncrease, corporation: Fields, status: str, issues: list[str]
) -> None:
    entity = await make_entity(increase, **corporation)

    assert entity.validation is not None
    assert entity.validation.status == status
    assert [issue.category for issue in entity.validation.issues] == issues


async def test_what_was_invalid_is_validated_anew_when_it_changes(increase: AsyncIncrease) -> None:
    entity = await make_entity(increase, "602210003")

    changed = await increase.entities.update(
        entity.id, corporation={"legal_identifier": {"value": "602214076"}}
    )

    assert changed.validation is not None
    assert changed.validation.status == "valid"
    with pytest.raises(InvalidOperationError):
        await increase.entities.update(
            entity.id, corporation={"legal_identifier": {"value": "602210001"}}
        )
    assert (await increase.entities.retrieve(entity.id)).corporation == changed.corporation


async def test_an_owner_is_changed_in_the_entity_too(increase: AsyncIncrease) -> None:
    entity = await make_entity(increase)
    assert entity.corporation is not None
    (listed,) = entity.corporation.beneficial_owners

    await increase.beneficial_owners.update(listed.id, name="Ada Hale")
    await increase.beneficial_owners.create(entity_id=entity.id, **owner("078051121"))
    renamed = await increase.entities.retrieve(entity.id)
    await increase.beneficial_owners.archive(listed.id)

    assert renamed.corporation is not None
    names = [item.individual.name for item in renamed.corporation.beneficial_owners]
    assert names == ["Ada Hale", "Ada Marsh"]
    left = await increase.entities.retrieve(entity.id)
    assert left.corporation is not None
    assert [item.individual.name for item in left.corporation.beneficial_owners] == ["Ada Marsh"]


async def test_without_a_control_person_there_is_no_entity(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    with pytest.raises(InvalidParametersError):
        await make_entity(increase, beneficial_owners=[owner(prongs=["ownership"])])

    assert (await increase.entities.list()).data == []


async def test_validation_may_take_its_time_and_be_simulated(
    running: RunningBank, increase: AsyncIncrease
) -> None:
    running.bank.conduct.validation_seconds = 0.01
    entity = await make_entity(increase)

    async def is_valid() -> bool:
        found = await increase.entities.retrieve(entity.id)
        return found.validation is not None and found.validation.status == "valid"

    assert entity.validation is not None
    assert entity.validation.status == "pending"
    await eventually("the entity is valid", is_valid)
    simulated = await increase.simulations.entities.update_validation(
        entity.id, issues=[{"category": "beneficial_owner_address"}]
    )
    assert simulated.validation is not None
    assert simulated.validation.issues[0].beneficial_owner_address is not None


async def test_accounts_are_closed_empty_and_before_their_entity(increase: AsyncIncrease) -> None:
    entity = await make_entity(increase)
    account = await open_account(increase, entity)
    number = await fund(increase, account, 100)

    with pytest.raises(InvalidOperationError):
        await increase.entities.archive(entity.id)
    with pytest.raises(InvalidOperationError):
        await increase.accounts.close(account.id)
    await increase.simulations.inbound_ach_transfers.create(
        account_number_id=number.id, amount=-100
    )
    closed = await increase.accounts.close(account.id)
    archived = await increase.entities.archive(entity.id)

    assert (closed.status, archived.status) == ("closed", "archived")
    assert closed.closed_at is not None


async def test_account_numbers_are_all_different(increase: AsyncIncrease) -> None:
    account = await open_account(increase)

    numbers = [
        (await increase.account_numbers.create(account_id=account.id, name=f"{n}")).account_number
        for n in range(5)
    ]

    assert len(set(numbers)) == 5
    listed = await increase.account_numbers.list(account_id=account.id)
    assert [item.account_number for item in listed.data] == numbers[::-1]


async def test_external_accounts_are_archived(increase: AsyncIncrease) -> None:
    external = await link_external(increase)

    archived = await increase.external_accounts.update(external.id, status="archived")

    assert (external.status, archived.status) == ("active", "archived")
    with pytest.raises(InvalidParametersError):
        await increase.external_accounts.create(
            account_number="1", routing_number="021000022", description="Wrong check digit"
        )


async def test_what_is_not_there_is_not_found(increase: AsyncIncrease) -> None:
    with pytest.raises(NotFoundError):
        await increase.accounts.retrieve("account_of_no_one")
