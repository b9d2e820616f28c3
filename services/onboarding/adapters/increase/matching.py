"""Which beneficial owner of an entity is which of our persons.

Increase gives the owners ids of its own, and promises no order. A person is told by name and date of birth, several of
one name and birthday by the last digits of their numbers. Persons whom nothing tells apart are the same to Increase as
well: the first of them is the owner with the smallest id, and so on, so that each reading gives the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from libs.providers.increase.entities import Owner
from services.onboarding.adapters.increase.parameters import full_name, last_four, prongs
from services.onboarding.models import PersonDetails

_Known = tuple[str, object]


def owner_of(
    owners: Sequence[Owner], persons: Sequence[PersonDetails], number: int
) -> Owner | None:
    """The owner that is `persons[number]`, who is told to Increase as one; None: there is none.

    Args:
        persons: all that the entity was made with.
    """
    person = persons[number]
    alike = [owner for owner in owners if _owner_known_by(owner) == _person_known_by(person)]
    twins = [
        position
        for position, other in enumerate(persons)
        if prongs(other) and _person_known_by(other) == _person_known_by(person)
    ]
    if len(twins) > 1:
        digits = last_four(person.tin)
        alike = [owner for owner in alike if _digits(owner) == digits]
        twins = [position for position in twins if last_four(persons[position].tin) == digits]
    alike.sort(key=_id)
    rank = twins.index(number)
    return alike[rank] if len(alike) == len(twins) else None


def _person_known_by(person: PersonDetails) -> _Known:
    return _normal(full_name(person)), person.date_of_birth


def _owner_known_by(owner: Owner) -> _Known:
    return _normal(owner.individual.name), owner.individual.date_of_birth


def _normal(name: str) -> str:
    return " ".join(name.split()).casefold()


def _digits(owner: Owner) -> str | None:
    identification = owner.individual.identification
    return identification.number_last4 if identification else None


def _id(owner: Owner) -> str:
    return owner.id
