"""Entities of Increase and their beneficial owners: what is read of them, and the calls that read them.

They are not read as the SDK's models: Increase adds categories of issues at any time, and an entity with a new one is
no less readable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec
from increase import AsyncIncrease, Omit

from libs.providers.increase.answers import read_answer

ACTIVE, ARCHIVED, DISABLED = "active", "archived", "disabled"
VALID, INVALID = "valid", "invalid"


class Address(msgspec.Struct):
    line1: str
    country: str
    city: str | None = None
    line2: str | None = None
    state: str | None = None
    zip: str | None = None


class Identification(msgspec.Struct):
    number_last4: str


class Individual(msgspec.Struct):
    name: str
    date_of_birth: date
    address: Address
    identification: Identification | None = None


class Owner(msgspec.Struct):
    """A beneficial owner. `entity_id`, `idempotency_key`: where it is read by itself."""

    id: str
    individual: Individual
    prongs: list[str]
    entity_id: str = ""
    idempotency_key: str | None = None


class LegalIdentifier(msgspec.Struct):
    category: str
    value: str


class Corporation(msgspec.Struct):
    name: str
    address: Address
    beneficial_owners: list[Owner] = []
    email: str | None = None
    incorporation_state: str | None = None
    industry_code: str | None = None
    legal_identifier: LegalIdentifier | None = None
    website: str | None = None


class Issue(msgspec.Struct):
    """Something that validation wants. `owner_id`: the beneficial owner that it is about."""

    category: str
    owner_id: str | None = None


class Validation(msgspec.Struct):
    status: str
    issues: list[dict[str, object]] = []

    def read_issues(self) -> list[Issue]:
        return [_issue(item) for item in self.issues]


class Entity(msgspec.Struct):
    """`description`: the id that the business has with us."""

    id: str
    status: str
    structure: str
    description: str | None = None
    idempotency_key: str | None = None
    corporation: Corporation | None = None
    validation: Validation | None = None

    @property
    def owners(self) -> Sequence[Owner]:
        return self.corporation.beneficial_owners if self.corporation else []


class Entities(msgspec.Struct):
    """A page of the list, the newest first."""

    data: list[Entity]
    next_cursor: str | None = None


async def list_entities(sdk: AsyncIncrease, cursor: str | Omit, limit: int) -> Entities:
    answer = await sdk.entities.with_raw_response.list(cursor=cursor, limit=limit)
    return read_answer(answer, Entities)


async def retrieve_entity(sdk: AsyncIncrease, entity_id: str) -> Entity:
    return read_answer(await sdk.entities.with_raw_response.retrieve(entity_id), Entity)


async def retrieve_owner(sdk: AsyncIncrease, owner_id: str) -> Owner:
    return read_answer(await sdk.beneficial_owners.with_raw_response.retrieve(owner_id), Owner)


def _issue(item: Mapping[str, object]) -> Issue:
    """An issue is about the beneficial owner that its details name, if they name one."""
    category = item.get("category")
    if not isinstance(category, str):
        return Issue("")
    match item.get(category):
        case {"beneficial_owner_id": str(owner_id)}:
            return Issue(category, owner_id)
        case _:
            return Issue(category)
