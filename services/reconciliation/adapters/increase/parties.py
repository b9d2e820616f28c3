"""Businesses and persons at Increase: an entity and its beneficial owners, for identity and core banking alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from libs.providers.increase.client import RETRIEVED_AT_ONCE, IncreaseClient
from libs.providers.increase.emails import email_at_increase
from libs.providers.increase.entities import (
    ACTIVE,
    ARCHIVED,
    INVALID,
    VALID,
    Address,
    Entity,
    list_entities,
    retrieve_entity,
    retrieve_owner,
)
from libs.providers.increase.lists import LARGEST_PAGE, retrieve_each
from libs.providers.increase.texts import text_at_increase
from services.reconciliation.adapters.increase.lists import CLOSED, OPEN, IncreaseList
from services.reconciliation.ports import CoreCustomer, IdentityRecord

BESIDE = "/"
"""Between an entity's id and our id of a person who is none of its beneficial owners: Increase has no record of its own
of such a person.
"""
PENDING_REVIEW = "pending_review"
CANCELED = "canceled"
VERDICTS: Mapping[str, str | None] = {VALID: "approved", INVALID: None}
"""Entities with any other status of validation are in review."""
US_EIN = "us_employer_identification_number"


@dataclass(frozen=True, slots=True)
class Party:
    """A business, or a person who belongs to one. `fields`: those that Increase shows as they were told to it."""

    record_id: str
    kind: str
    entity: Entity
    fields: dict[str, Any]


RowT = TypeVar("RowT", IdentityRecord, CoreCustomer)


def customers(
    client: IncreaseClient, row_of: Callable[[Party], RowT]
) -> IncreaseList[Entity, RowT]:
    async def found(ids: Sequence[str], deadline: float) -> Sequence[RowT]:
        wanted = set(ids)
        asked = list(dict.fromkeys(one.partition(BESIDE)[0] for one in ids))
        entities: dict[str, Entity] = {}
        parties: dict[str, Party] = {}
        for begin in range(0, len(asked), RETRIEVED_AT_ONCE):
            # An owner whose business comes before it is known by now, and not asked for as an entity.
            some = [one for one in asked[begin : begin + RETRIEVED_AT_ONCE] if one not in parties]
            for entity in await _entities(client, some, deadline):
                entities[entity.id] = entity
                parties |= {party.record_id: party for party in parties_of(entity)}
        for one in wanted:
            business = entities.get(one.partition(BESIDE)[0])
            if BESIDE in one and business is not None:
                parties[one] = Party(one, "person", business, {})
        owners = await retrieve_each(
            client,
            "get_beneficial_owner",
            retrieve_owner,
            [one for one in wanted - parties.keys() - entities.keys() if BESIDE not in one],
            deadline=deadline,
        )
        of_owners = {owner.entity_id for owner in owners.values()}
        for entity in await _entities(client, of_owners, deadline):
            parties |= {party.record_id: party for party in parties_of(entity)}
        return [row_of(parties[one]) for one in wanted & parties.keys()]

    return IncreaseList(
        client,
        "entities",
        lambda sdk, cursor: list_entities(sdk, cursor, LARGEST_PAGE),
        found,
        lambda entity: [row_of(party) for party in parties_of(entity)],
    )


async def _entities(
    client: IncreaseClient, ids: Sequence[str] | set[str], deadline: float
) -> Sequence[Entity]:
    found = await retrieve_each(client, "get_entity", retrieve_entity, ids, deadline=deadline)
    return list(found.values())


def parties_of(entity: Entity) -> Iterator[Party]:
    """The business, then its owners. Entities of other structures are not of our making."""
    corporation = entity.corporation
    if corporation is None:
        return
    fields: dict[str, Any] = {
        "business_name": corporation.name,
        "business_address": _address(corporation.address),
        "email": corporation.email,
        "formation_state": corporation.incorporation_state,
        "naics_code": corporation.industry_code,
    }
    identifier = corporation.legal_identifier
    if identifier is not None and identifier.category == US_EIN:
        fields["ein"] = identifier.value
    yield Party(entity.id, "business", entity, fields)
    for owner in corporation.beneficial_owners:
        individual = owner.individual
        shown = {
            "date_of_birth": individual.date_of_birth.isoformat(),
            "home_address": _address(individual.address),
        }
        yield Party(owner.id, "person", entity, shown)


def _address(address: Address) -> dict[str, str | None]:
    return {
        "street_1": address.line1,
        "street_2": address.line2,
        "city": address.city,
        "state": address.state,
        "zip_code": address.zip,
        "country": address.country,
    }


def identity_record(party: Party) -> IdentityRecord:
    is_business = party.kind == "business"
    return IdentityRecord(
        identity_id=party.record_id,
        customer_id="",
        kind=party.kind,
        status=_verdict_of(party),
        fields=party.fields,
        business_record_id=None if is_business else party.entity.id,
        fields_are_partial=True,
        email_form=email_at_increase,
        text_form=text_at_increase,
        made_under=party.entity.idempotency_key,
    )


def _verdict_of(party: Party) -> str | None:
    """None where it cannot be told from the entity alone: issues may be those of the business or of its persons.

    Increase decides about the business as a whole: persons have a verdict only with one that is closed.
    """
    entity = party.entity
    if entity.status == ARCHIVED:
        return CANCELED
    if party.kind == "person":
        return None
    if entity.status != ACTIVE or entity.validation is None:
        return PENDING_REVIEW
    return VERDICTS.get(entity.validation.status, PENDING_REVIEW)


def core_customer(party: Party) -> CoreCustomer:
    return CoreCustomer(
        core_id=party.record_id,
        customer_id="",
        kind=party.kind,
        status=CLOSED if party.entity.status == ARCHIVED else OPEN,
        fields=party.fields,
        business_record_id=None if party.kind == "business" else party.entity.id,
        fields_are_partial=True,
        email_form=email_at_increase,
        text_form=text_at_increase,
        made_under=party.entity.idempotency_key,
    )
