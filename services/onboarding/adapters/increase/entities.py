"""Entities of Increase and their beneficial owners: the calls that make and change them."""

from __future__ import annotations

import msgspec
from increase import AsyncIncrease, omit
from increase.types import beneficial_owner_update_params as owner_update
from increase.types import entity_create_params as create
from increase.types import entity_update_params as update

from libs.providers.increase.answers import read_answer
from libs.providers.increase.entities import Entities, Entity, Owner


class Owners(msgspec.Struct):
    data: list[Owner]


async def create_entity(
    sdk: AsyncIncrease, corporation: create.Corporation, description: str, key: str
) -> Entity:
    answer = await sdk.entities.with_raw_response.create(
        structure="corporation",
        corporation=corporation,
        description=description,
        idempotency_key=key,
    )
    return read_answer(answer, Entity)


async def entities_having_key(sdk: AsyncIncrease, key: str) -> Entities:
    return read_answer(await sdk.entities.with_raw_response.list(idempotency_key=key), Entities)


async def update_entity(
    sdk: AsyncIncrease, entity_id: str, corporation: update.Corporation
) -> Entity:
    answer = await sdk.entities.with_raw_response.update(entity_id, corporation=corporation)
    return read_answer(answer, Entity)


async def archive_entity(sdk: AsyncIncrease, entity_id: str, key: str) -> Entity:
    answer = await sdk.entities.with_raw_response.archive(entity_id, idempotency_key=key)
    return read_answer(answer, Entity)


async def update_owner(
    sdk: AsyncIncrease, owner_id: str, changes: owner_update.BeneficialOwnerUpdateParams
) -> Owner:
    answer = await sdk.beneficial_owners.with_raw_response.update(
        owner_id,
        address=changes.get("address", omit),
        date_of_birth=changes.get("date_of_birth", omit),
        identification=changes.get("identification", omit),
        name=changes.get("name", omit),
        prongs=changes.get("prongs", omit),
    )
    return read_answer(answer, Owner)


async def create_owner(
    sdk: AsyncIncrease, entity_id: str, owner: create.CorporationBeneficialOwner, key: str
) -> Owner:
    answer = await sdk.beneficial_owners.with_raw_response.create(
        entity_id=entity_id,
        individual=owner["individual"],
        prongs=owner["prongs"],
        company_title=owner.get("company_title", omit),
        idempotency_key=key,
    )
    return read_answer(answer, Owner)


async def owners_having_key(sdk: AsyncIncrease, entity_id: str, key: str) -> Owners:
    answer = await sdk.beneficial_owners.with_raw_response.list(
        entity_id=entity_id, idempotency_key=key
    )
    return read_answer(answer, Owners)


async def archive_owner(sdk: AsyncIncrease, owner_id: str, key: str) -> Owner:
    answer = await sdk.beneficial_owners.with_raw_response.archive(owner_id, idempotency_key=key)
    return read_answer(answer, Owner)
