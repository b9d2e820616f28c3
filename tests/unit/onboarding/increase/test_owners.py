"""Which beneficial owner is which person, and what becomes of it when the person changes."""

from __future__ import annotations

from uuid import uuid4

import pytest

from libs.providers.outcomes import Absent, Accepted, Refused, Unknown
from services.onboarding.models import PersonDetails
from services.onboarding.ports import KnownPerson
from tests.integration.onboarding.desk import address, tax_number
from tests.unit.onboarding.increase.conftest import Increase, a_person, done, soon

SMALL = {"controller": False, "ownership_percentage": 10}


def changed(person: PersonDetails, **changes: object) -> PersonDetails:
    return PersonDetails.model_validate({**person.model_dump(), **changes})


async def test_persons_are_found_among_the_owners_in_any_order(increase: Increase) -> None:
    twin = {"first_name": "Bob", "date_of_birth": "1970-01-02", "ownership_percentage": 20}
    persons = [
        a_person(**twin),
        a_person(first_name="Cid", **SMALL),
        a_person(**twin, tin=tax_number("2222")),
        a_person(**twin),
        a_person(ownership_percentage=25, controller=False),
    ]

    entity_id, known = await increase.verified(persons)
    bank = increase.running.bank.store
    entity = bank.get("entity", entity_id)
    entity["corporation"]["beneficial_owners"].reverse()
    with bank.writing():
        bank.save(entity)
    again = [
        (await done(increase.identity.verify_person(one.our_id, uuid4(), persons, n, entity_id)))
        for n, one in enumerate(known)
    ]

    owners = {owner["id"]: owner for owner in increase.objects("entity_beneficial_owner")}
    assert len(owners) == 4
    assert {one.id for one in known} == {*owners, f"{entity_id}/{known[1].our_id}"}
    assert [one.identity_id for one in again] == [one.id for one in known]
    assert owners[known[2].id]["individual"]["identification"]["number_last4"] == "2222"
    assert owners[known[4].id]["prongs"] == ["ownership"]
    assert {status.value for status in (one.status for one in again)} == {"approved"}


async def test_a_person_whom_the_entity_does_not_have_is_left_to_an_operator(
    increase: Increase,
) -> None:
    entity_id, _ = await increase.verified([a_person()])
    stranger = increase.identity.verify_person(
        uuid4(), uuid4(), [a_person(first_name="Eve")], 0, entity_id
    )

    outcome = await stranger.send(uuid4(), soon())

    assert isinstance(outcome, Unknown)
    assert outcome.needs_operator


async def test_a_person_who_comes_to_control_becomes_an_owner_and_back(increase: Increase) -> None:
    person = a_person(first_name="Cid", **SMALL)
    _, (_, known) = await increase.verified([a_person(), person])
    controls = changed(person, controller=True)
    become = increase.identity.update_person(known, {"controller": True}, controls)
    key = uuid4()
    absent = await become.find(key, soon())
    increase.fault("POST /entity_beneficial_owners", "accept_then_drop")

    lost = await become.send(key, soon())
    found = await become.find(key, soon())
    again = await become.send(key, soon())

    assert absent == Absent()
    assert isinstance(lost, Unknown)
    assert isinstance(found, Accepted)
    assert found == again
    owners = increase.objects("entity_beneficial_owner")
    assert [owner["individual"]["name"] for owner in owners] == ["Ada Byron", "Cid Byron"]
    assert found.answer.identity_id == owners[1]["id"]

    as_owner = KnownPerson(known.our_id, owners[1]["id"], known.business_id)
    cease = increase.identity.update_person(as_owner, {"controller": False}, person)
    before = await cease.find(key, soon())
    ceased = await done(cease)
    after = await cease.find(key, soon())

    assert before == Absent()
    assert ceased.identity_id == known.id
    assert isinstance(after, Accepted)
    assert after.answer == ceased


@pytest.mark.parametrize("answered", [True, False])
async def test_a_change_of_an_owner_is_found_once_it_is_made(
    increase: Increase, answered: bool
) -> None:
    person = a_person()
    _, (known,) = await increase.verified([person])
    changes = {
        "last_name": "Lovelace",
        "home_address": address(street_1="2 Side St"),
        "date_of_birth": "1981-01-01",
        "ownership_percentage": 0,
        "phone": "+12125550199",
    }
    write = increase.identity.update_person(known, changes, changed(person, **changes))
    if not answered:
        increase.fault("PATCH /entity_beneficial_owners/{id}", "accept_then_drop")

    before = await write.find(uuid4(), soon())
    sent = await write.send(uuid4(), soon())
    found = await write.find(uuid4(), soon())

    assert before == Absent()
    assert isinstance(sent, Accepted if answered else Unknown)
    assert isinstance(found, Accepted)
    assert write.capabilities.shows_writes
    (owner,) = increase.objects("entity_beneficial_owner")
    assert owner["individual"]["name"] == "Ada Lovelace"
    assert owner["individual"]["date_of_birth"] == "1981-01-01"
    assert owner["prongs"] == ["control"]


async def test_a_tax_number_is_never_found_since_it_is_not_shown(increase: Increase) -> None:
    person = a_person()
    _, (known,) = await increase.verified([person])
    changes = {"tin": tax_number(person.tin[-4:])}
    write = increase.identity.update_person(known, changes, changed(person, **changes))

    await done(write)

    assert await write.find(uuid4(), soon()) == Absent()
    assert not write.capabilities.takes_keys
    assert not write.capabilities.shows_writes


async def test_what_increase_does_not_have_is_changed_nowhere(increase: Increase) -> None:
    person = a_person()
    entity_id, (known,) = await increase.verified([person])
    before = increase.objects("entity")
    changes = {"phone": "+12125550199"}

    updated = await done(
        increase.identity.update_person(known, changes, changed(person, **changes))
    )
    await done(increase.identity.update_business(entity_id, {"dba": "Acme", "website": None}))

    assert updated.identity_id == known.id
    assert increase.objects("entity") == before


async def test_an_owner_of_an_archived_entity_is_not_changed(increase: Increase) -> None:
    person = a_person()
    entity_id, (known,) = await increase.verified([person])
    await done(increase.identity.cancel_business(entity_id))
    changes = {"last_name": "Lovelace"}

    outcome = await increase.identity.update_person(
        known, changes, changed(person, **changes)
    ).send(uuid4(), soon())

    assert isinstance(outcome, Refused)
