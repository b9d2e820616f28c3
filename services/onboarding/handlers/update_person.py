"""Update of a person (interface §6)."""

from __future__ import annotations

from uuid import UUID

from uuid_utils import uuid7

from libs.contracts.customers import CustomerStatus, UpdatePerson, broken_person_rules
from libs.contracts.errors import Invalid, NotFound, OutcomePending, ProviderRefused, Unavailable
from libs.contracts.ids import id_of
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import require_nothing_lost
from libs.providers.writing import ProviderWrite
from libs.runtime.crash import crash_point
from services.onboarding import amending
from services.onboarding.handlers.amendment import (
    REFUSED,
    REFUSED_BY_CORE,
    Amendment,
    NotAmended,
    Written,
    follow_answer,
    identity_id_of,
    is_news,
    refuse_to_overtake,
    refuse_what_has_begun,
    refuse_when_final,
    write_to_providers,
)
from services.onboarding.handlers.apply_decision import decision
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import (
    CustomerFile,
    CustomerRecord,
    PersonDetails,
    PersonRecord,
    Verification,
)
from services.onboarding.ordering import ordering_key
from services.onboarding.ports import Changes, CoreCustomer, KnownPerson
from services.onboarding.repository import steps
from services.onboarding.repository.sagas import saga_id_of
from services.onboarding.saga import NothingSent, StepRefused, saga_of_change


class UpdatePersonHandler:
    """Crash points besides those of the steps: `onboarding.person_updated.committing` and `.committed`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, drive: Drive, command: UpdatePerson) -> Result:
        saga_id = await saga_id_of(drive)
        try:
            file, person, details, amended = await self._prepare(drive, command, saga_id)
            if amended == details:
                return Result()
            written = await write_to_providers(
                saga_of_change(drive, saga_id, person.customer_id),
                self._amendment(file.customer, person, details, amended),
            )
        except NothingSent as error:
            raise Unavailable from error
        except StepRefused as error:
            raise ProviderRefused(REFUSED, extra={"reason_detail": error.words}) from error
        except NotAmended as error:
            await self._keep_identity(drive, person, error.verification)
            raise ProviderRefused(REFUSED_BY_CORE, extra={"reason_detail": error.words}) from error
        await self._record(drive, person, amended, written)
        return Result()

    def _amendment(
        self,
        customer: CustomerRecord,
        person: PersonRecord,
        details: PersonDetails,
        amended: PersonDetails,
    ) -> Amendment[PersonDetails]:
        identity, core, person_id = self._parts.identity, self._parts.core, person.person_id
        business_identity_id = identity_id_of(customer.verification)

        def at_identity(
            known_as: str, changes: Changes, whole: PersonDetails
        ) -> ProviderWrite[Verification]:
            known = KnownPerson(person_id, known_as, business_identity_id)
            return identity.update_person(known, changes, whole)

        def at_core(
            known_as: str, changes: Changes, whole: PersonDetails, identity_id: str
        ) -> ProviderWrite[CoreCustomer]:
            assert customer.core_id is not None, "a person is at core banking with its business"
            known = KnownPerson(person_id, known_as, customer.core_id)
            return core.change_person(known, changes, whole, identity_id)

        identity_id = identity_id_of(person.verification)
        return Amendment(details, amended, identity_id, person.core_id, at_identity, at_core)

    async def _prepare(
        self, drive: Drive, command: UpdatePerson, saga_id: UUID
    ) -> tuple[CustomerFile, PersonRecord, PersonDetails, PersonDetails]:
        """The customer, the person, its details, and those as they are to be.

        Raises:
            NotFound, InvalidState, Invalid: the caller's fault.
            OutcomePending: the onboarding of its business is not over; or for NotFound, while this database may have
                gone back.
            NeedsOperator: an earlier change of the customer is not over, or as `refuse_what_has_begun`.
            StepRefused: as `refuse_what_has_begun`.
        """
        tenant, store = drive.principal.tenant, self._parts.store
        person_id = id_of(command.person_id)
        # A partner knows the ids that it gave: the command may be older than its person, and have no order yet.
        async with drive.database.transaction() as connection:
            customer_id = await store.persons.customer_of(connection, tenant, person_id)
            if customer_id is None:
                await require_nothing_lost(connection)
                raise NotFound
            key = ordering_key(tenant, customer_id)
            has_just_got_one = await inbox_acceptance.give_order(connection, drive.command_id, key)
        if has_just_got_one:
            raise OutcomePending
        async with drive.transaction() as connection:
            file = await self._parts.locked_file(connection, tenant, customer_id)
            has_begun = await steps.has_saga_begun(connection, tenant, saga_id)
            # What has begun is driven to its end, also when the customer's came before it.
            if not has_begun:
                refuse_when_final(file.customer)
            if file.customer.status is CustomerStatus.PENDING:
                raise OutcomePending
            await refuse_to_overtake(connection, file.customer, saga_id)
            details = (await store.persons.details(connection, tenant, [person_id]))[person_id]
            try:
                amended = amending.amended_person(details, command)
                _check_together(file, person_id, amended)
            except Invalid as refused:
                if not has_begun:
                    raise
                await refuse_what_has_begun(connection, tenant, saga_id, refused)
        return file, file.person(person_id), details, amended

    async def _keep_identity(self, drive: Drive, person: PersonRecord, said: Verification) -> None:
        """A provider may have given the person another identity by the change, or when it was taken back."""
        if said.identity_id == identity_id_of(person.verification):
            return
        parts, tenant, customer_id = self._parts, person.tenant, person.customer_id
        async with drive.transaction() as connection:
            await parts.locked_file(connection, tenant, customer_id)
            await parts.store.persons.set_verification(connection, person, said)
            if said.status is not person.status:
                file = await parts.locked_file(connection, tenant, customer_id)
                now = file.person(person.person_id)
                await parts.events.of_person(connection, "person.updated", now)
            await _ask_about(connection, drive, person)

    async def _record(
        self, drive: Drive, person: PersonRecord, amended: PersonDetails, written: Written
    ) -> None:
        parts, tenant, customer_id = self._parts, person.tenant, person.customer_id
        async with drive.transaction() as connection:
            before = await parts.locked_file(connection, tenant, customer_id)
            await parts.store.persons.set_details(connection, person, amended)
            has_news = is_news(person.verification, written.verification)
            if has_news:
                await parts.store.persons.set_verification(connection, person, written.verification)
                if written.verification.identity_id != identity_id_of(person.verification):
                    await _ask_about(connection, drive, person)
            if written.core is not None and written.core.core_id != person.core_id:
                await parts.store.persons.set_core_id(connection, person, written.core.core_id)
            file = await parts.locked_file(connection, tenant, customer_id)
            await parts.events.of_person(
                connection, "person.updated", file.person(person.person_id)
            )
            if has_news:
                await follow_answer(connection, parts, before, file)
            crash_point("onboarding.person_updated.committing")
        crash_point("onboarding.person_updated.committed")


async def _ask_about(connection: AsyncConnection, drive: Drive, person: PersonRecord) -> None:
    """A person's new identity is recorded by the answer that made it, which may be days old where the update had to
    wait. What the provider has said of it since was about an identity that was not recorded.

    The decision gets its order by itself (`apply_decision`): here the row of a command is locked, and the lock of an
    order comes before that.
    """
    asking = decision(
        UUID(bytes=uuid7().bytes),
        person.tenant,
        person.customer_id,
        None,
        subscription_key=drive.principal.subscription_key,
        is_ordered=False,
    )
    await inbox_acceptance.enqueue(connection, asking)


def _check_together(file: CustomerFile, person_id: UUID, amended: PersonDetails) -> None:
    """Raises Invalid when the persons would no longer be right together (interface §5)."""
    together: list[PersonRecord | PersonDetails] = [
        amended if person.person_id == person_id else person for person in file.persons
    ]
    broken = broken_person_rules(
        [
            {"controller": each.controller, "ownership_percentage": each.ownership_percentage}
            for each in together
        ]
    )
    if broken:
        raise Invalid([{"loc": ["body"], "msg": rule, "type": "value_error"} for rule in broken])
