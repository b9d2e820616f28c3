"""Businesses with their persons as entities of Increase: writes that the identity role and core banking have alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from increase import AsyncIncrease

from libs.contracts.customers import Business
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.entities import (
    ARCHIVED,
    Entity,
    Owner,
    retrieve_entity,
    retrieve_owner,
)
from libs.providers.increase.keyed_write import KeyedWrite
from libs.providers.outcomes import Accepted, Reason, Refused, Unknown
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.increase import entities
from services.onboarding.adapters.increase.matching import owner_of
from services.onboarding.adapters.increase.parameters import (
    changed_corporation,
    changed_owner,
    corporation,
    owner,
    prongs,
)
from services.onboarding.adapters.increase.shown import corporation_shows, is_shown, owner_shows
from services.onboarding.adapters.increase.unkeyed_writes import (
    Change,
    Reading,
    ThenRead,
    of_changes,
)
from services.onboarding.adapters.increase.verdicts import beside, is_beside
from services.onboarding.models import PersonDetails
from services.onboarding.ports import Changes, KnownPerson

AnswerT = TypeVar("AnswerT")
MadeT = TypeVar("MadeT")

Answer = Callable[[Entity, str], AnswerT]
"""(entity, the id of the business or person at Increase) -> what the port answers."""


@dataclass(frozen=True)
class Customers(Generic[AnswerT]):
    client: IncreaseClient
    capabilities: Capabilities
    answer: Answer[AnswerT]

    def create(
        self, customer_id: UUID, business: Business, persons: Sequence[PersonDetails]
    ) -> ProviderWrite[AnswerT]:
        told, ours = corporation(business, persons), str(customer_id)

        async def create(sdk: AsyncIncrease, key: str) -> Entity:
            return await entities.create_entity(sdk, told, ours, key)

        def answer(made: Entity) -> AnswerT | None:
            return self.answer(made, made.id) if made.description == ours else None

        return KeyedWrite(
            self.client,
            self.capabilities,
            "create_entity",
            create,
            entities.entities_having_key,
            retrieve_entity,
            answer,
        )

    def person(
        self, entity_id: str, person_id: UUID, persons: Sequence[PersonDetails], number: int
    ) -> ProviderWrite[AnswerT]:
        """The owner that was made with the entity. Nothing is written.

        Args:
            number: of the person in `persons`, all that the entity was made with.
        """

        def answer(entity: Entity) -> Accepted[AnswerT] | Unknown:
            if not prongs(persons[number]):
                return Accepted(self.answer(entity, beside(entity.id, person_id)))
            owner = owner_of(entity.owners, persons, number)
            if owner is None:
                return Unknown("the entity does not have the beneficial owner", needs_operator=True)
            return Accepted(self.answer(entity, owner.id))

        return self._reading("find_owner", entity_id, answer)

    def update_business(self, entity_id: str, changes: Changes) -> ProviderWrite[AnswerT]:
        told = changed_corporation(changes)
        if not told:
            return self._unchanged(entity_id, entity_id)
        return Change(
            self.client,
            of_changes(self.capabilities),
            "update_entity",
            lambda sdk, _: entities.update_entity(sdk, entity_id, told),
            lambda sdk: retrieve_entity(sdk, entity_id),
            lambda entity: corporation_shows(entity.corporation, told),
            lambda entity: self.answer(entity, entity.id),
        )

    def update_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails
    ) -> ProviderWrite[AnswerT]:
        """By the change the person may become a beneficial owner, or cease to be one: then the answer has another id.

        Args:
            person: as it is to be.
        """
        if not prongs(person):
            if is_beside(known.id):
                return self._unchanged(known.business_id, known.id)
            not_owner = beside(known.business_id, known.our_id)
            return self._then_read(known, self._archive_owner(known), lambda _: not_owner)
        if is_beside(known.id):
            return self._then_read(known, self._create_owner(known.business_id, person), _id_of)
        told = changed_owner(changes, person)
        if not told:
            return self._unchanged(known.business_id, known.id)
        change: Change[Owner, Owner] = Change(
            self.client,
            of_changes(self.capabilities, is_shown=is_shown(told)),
            "update_owner",
            lambda sdk, _: entities.update_owner(sdk, known.id, told),
            lambda sdk: retrieve_owner(sdk, known.id),
            lambda owner: owner_shows(owner, told),
            lambda owner: owner,
        )
        return self._then_read(known, change, _id_of)

    def archive(self, entity_id: str) -> Change[Entity, AnswerT]:
        """Archived already counts as archived now."""
        return Change(
            self.client,
            self.capabilities,
            "archive_entity",
            lambda sdk, key: entities.archive_entity(sdk, entity_id, key),
            lambda sdk: retrieve_entity(sdk, entity_id),
            lambda entity: entity.status == ARCHIVED,
            lambda entity: self.answer(entity, entity.id),
        )

    def _create_owner(self, entity_id: str, person: PersonDetails) -> ProviderWrite[Owner]:
        told = owner(person)
        return KeyedWrite(
            self.client,
            self.capabilities,
            "create_owner",
            lambda sdk, key: entities.create_owner(sdk, entity_id, told, key),
            lambda sdk, key: entities.owners_having_key(sdk, entity_id, key),
            retrieve_owner,
            lambda made: made if made.entity_id == entity_id else None,
        )

    def _archive_owner(self, known: KnownPerson) -> ProviderWrite[bool]:
        async def archive(sdk: AsyncIncrease, key: str) -> bool:
            await entities.archive_owner(sdk, known.id, key)
            return True

        async def is_archived(sdk: AsyncIncrease) -> bool:
            entity = await retrieve_entity(sdk, known.business_id)
            return known.id not in {owner.id for owner in entity.owners}

        return Change(
            self.client, self.capabilities, "archive_owner", archive, is_archived, bool, bool
        )

    def _unchanged(self, entity_id: str, answers_for: str) -> ProviderWrite[AnswerT]:
        """A change of what Increase does not have."""

        def answer(entity: Entity) -> Accepted[AnswerT] | Refused:
            if entity.status == ARCHIVED:
                return Refused(Reason.PROVIDER_REFUSED, ARCHIVED)
            return Accepted(self.answer(entity, answers_for))

        return self._reading("find_entity", entity_id, answer)

    def _reading(
        self,
        operation: str,
        entity_id: str,
        answer: Callable[[Entity], Accepted[AnswerT] | Refused | Unknown],
    ) -> Reading[Entity, AnswerT]:
        return Reading(
            self.client,
            self.capabilities,
            operation,
            lambda sdk: retrieve_entity(sdk, entity_id),
            answer,
        )

    def _then_read(
        self, known: KnownPerson, write: ProviderWrite[MadeT], id_of: Callable[[MadeT], str]
    ) -> ProviderWrite[AnswerT]:
        def reading(made: MadeT) -> ProviderWrite[AnswerT]:
            return self._reading(
                "find_entity",
                known.business_id,
                lambda entity: Accepted(self.answer(entity, id_of(made))),
            )

        return ThenRead(write, reading)


def _id_of(owner: Owner) -> str:
    return owner.id
