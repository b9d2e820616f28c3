"""Onboarding: the application is stored, verified, and when all are approved opened at core banking (interface §6)."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from libs.contracts.customers import CustomerStatus, OnboardCustomer
from libs.contracts.errors import AlreadyExists, OutcomePending, ProviderRefused, Unavailable
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.runtime.crash import crash_point
from services.onboarding import states, views
from services.onboarding.handlers.denial import Denial
from services.onboarding.handlers.opening import Opening, OpeningRefused, saga_of
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import derived
from services.onboarding.models import CustomerFile, PersonDetails, PersonRecord, Verification
from services.onboarding.repository import ein_holds
from services.onboarding.repository.sagas import saga_id_of
from services.onboarding.saga import NothingSent, Saga, StepRefused


class OnboardCustomerHandler:
    """Crash points besides those of the steps: `onboarding.application.committing` and `.committed`,
    `onboarding.verified.committing` and `.committed`.
    """

    def __init__(self, parts: Parts, opening: Opening, denial: Denial) -> None:
        self._parts = parts
        self._opening = opening
        self._denial = denial

    async def __call__(self, drive: Drive, command: OnboardCustomer) -> Result:
        file = await self._apply(drive, command)
        if file.customer.status is CustomerStatus.PENDING:
            file = await self._carry_on(saga_of(drive, file.customer), file)
        if file.customer.refused_by_provider:
            raise ProviderRefused
        return Result(data=views.onboarding_result(file))

    async def _carry_on(self, saga: Saga, file: CustomerFile) -> CustomerFile:
        """Verify, decide, and open when all are approved; the file afterwards."""
        try:
            await self._verify(saga, file)
        except StepRefused as refused:
            await self._denial.deny(saga)
            raise ProviderRefused from refused
        file = await self._decide(saga)
        if file.customer.status is not CustomerStatus.PENDING:
            return file
        try:
            return await self._opening.open(saga, file)
        except OpeningRefused as refused:
            raise ProviderRefused from refused

    async def _apply(self, drive: Drive, command: OnboardCustomer) -> CustomerFile:
        """Store the application, once.

        Raises:
            AlreadyExists: the partner has a customer with this EIN, or a person with one of the ids.
        """
        tenant, store = drive.principal.tenant, self._parts.store
        saga_id = await saga_id_of(drive)
        customer_id = derived(saga_id, "customer")
        async with drive.transaction() as connection:
            stored = await store.file(connection, tenant, customer_id)
            if stored is not None:
                return stored
            await self._insert(connection, tenant, saga_id, customer_id, command)
            file = await store.file(connection, tenant, customer_id)
            assert file is not None
            crash_point("onboarding.application.committing")
        crash_point("onboarding.application.committed")
        return file

    async def _insert(
        self,
        connection: AsyncConnection,
        tenant: str,
        saga_id: UUID,
        customer_id: UUID,
        command: OnboardCustomer,
    ) -> None:
        store = self._parts.store
        business = command.business
        if business.mailing_address is None:
            business = business.model_copy(update={"mailing_address": business.business_address})
        digest = store.vault.ein_digest(business.ein)
        if not await ein_holds.take(connection, tenant, customer_id, digest):
            raise AlreadyExists("A customer with this EIN exists already.")
        await store.customers.add(
            connection, tenant=tenant, customer_id=customer_id, saga_id=saga_id, business=business
        )
        persons = [
            (
                person.id or derived(saga_id, f"person.{number}"),
                PersonDetails.model_validate(person.model_dump(exclude={"id"})),
            )
            for number, person in enumerate(command.persons, start=1)
        ]
        if not await store.persons.add(
            connection, tenant=tenant, customer_id=customer_id, persons=persons
        ):
            raise AlreadyExists("A person with this id exists already.")
        await store.external_accounts.add_draft(
            connection,
            draft_id=derived(saga_id, "external_account"),
            tenant=tenant,
            customer_id=customer_id,
            account=command.external_bank_account,
        )

    async def _verify(self, saga: Saga, file: CustomerFile) -> None:
        """Verification of the business and of each person, each answer stored as it comes."""
        identity, store, customer = self._parts.identity, self._parts.store, file.customer
        async with saga.drive.transaction() as connection:
            details = await store.details(connection, file)

        async def announce(connection: AsyncConnection, answer: Verification) -> None:
            """From here on a provider knows of the customer: it is there to stay."""
            await store.customers.set_verification(connection, customer, answer)
            await self._parts.announce(connection, file)

        try:
            await saga.first_step(
                "verify_business",
                Verification,
                identity.verify_business(customer.customer_id, details.business),
                then=announce,
            )
        except NothingSent as error:
            await self._take_back(saga.drive, file)
            raise Unavailable from error
        told = zip(file.persons, details.persons, strict=True)
        for number, (person, person_details) in enumerate(told, start=1):
            await self._verify_person(saga, number, person, person_details)

    async def _verify_person(
        self, saga: Saga, number: int, person: PersonRecord, details: PersonDetails
    ) -> None:
        async def store(connection: AsyncConnection, answer: Verification) -> None:
            await self._parts.store.persons.set_verification(connection, person, answer)

        await saga.step(
            f"verify_person.{number}",
            Verification,
            self._parts.identity.verify_person(person.person_id, person.customer_id, details),
            then=store,
        )

    async def _take_back(self, drive: Drive, file: CustomerFile) -> None:
        """Leave no trace. A command that goes on all the same stores its application anew, under the same ids."""
        customer = file.customer
        async with drive.transaction() as connection:
            await self._parts.store.customers.remove(
                connection, customer.tenant, customer.customer_id
            )

    async def _decide(self, saga: Saga) -> CustomerFile:
        """Move the customer to what the verifications make together; approved, it stays pending until opened.

        Raises:
            OutcomePending: the identity provider has not decided; its feed tells when it has (see `apply_decision`).
        """
        parts, name = self._parts, saga.name
        async with saga.drive.transaction() as connection:
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            status = states.overall(file.verifications)
            if status is CustomerStatus.APPROVED:
                return file
            following = states.following(file.customer.status, status)
            if following is None:
                raise OutcomePending
            await parts.move(connection, file, following)
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            crash_point("onboarding.verified.committing")
        crash_point("onboarding.verified.committed")
        return file
