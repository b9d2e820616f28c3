"""Onboarding: the application is stored, verified, and when all are approved opened at core banking (interface §6)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from libs.contracts.customers import CustomerStatus, OnboardCustomer, Person
from libs.contracts.errors import OutcomePending, ProviderRefused, Unavailable
from libs.contracts.masking import masked
from libs.contracts.result import Result
from libs.handling.awaiting import OutcomeAwaited
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import has_lost_history, require_nothing_lost
from libs.providers.writing import ProviderWrite
from libs.runtime.crash import crash_point
from services.onboarding import states, views
from services.onboarding.handlers.amendment import taken
from services.onboarding.handlers.apply_decision import decision
from services.onboarding.handlers.denial import Denial
from services.onboarding.handlers.opening import (
    CREATE_CORE_BUSINESS,
    Opening,
    OpeningRefused,
    saga_of,
)
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import derived
from services.onboarding.models import (
    CustomerDetails,
    CustomerFile,
    PersonDetails,
    PersonRecord,
    Verification,
)
from services.onboarding.repository import customers, external_accounts, persons
from services.onboarding.repository.customer_files import StoredCustomer
from services.onboarding.repository.onboarding_commits import (
    ANNOUNCE,
    DECIDE,
    RECORD_APPLICATION,
    Application,
    ApplicationConflict,
    NewPerson,
)
from services.onboarding.repository.sagas import saga_id_of
from services.onboarding.repository.step_commits import ADVANCE, Advance
from services.onboarding.repository.steps import Begun, SagaName
from services.onboarding.saga import NothingSent, Saga, StepRefused

VERIFY_BUSINESS = "verify_business"

REFUSED = "A provider refused the application: the customer is denied, and its `issues` say why."


class OnboardCustomerHandler:
    """Crash points besides those of the steps: `onboarding.application.committing` and `.committed`,
    `onboarding.verified.committing` and `.committed`.
    """

    def __init__(self, parts: Parts, opening: Opening, denial: Denial) -> None:
        self._parts = parts
        self._opening = opening
        self._denial = denial

    async def __call__(self, drive: Drive, command: OnboardCustomer) -> Result:
        saga_id = await saga_id_of(drive)
        saga = saga_of(drive, saga_id, derived(saga_id, "customer"))
        stored = await self._apply(saga, command)
        file = stored.file
        if file.customer.status is CustomerStatus.PENDING:
            file = await self._carry_on(saga, stored)
        if file.customer.refused_by_provider:
            raise _refused(file)
        return Result(data=views.onboarding_result(file))

    async def _carry_on(self, saga: Saga, stored: StoredCustomer) -> CustomerFile:
        """Verify, decide, and open when all are approved; the file afterwards."""
        details = stored.details(self._parts.store.vault)
        try:
            file = await self._verify(saga, stored.file, details)
        except StepRefused as refused:
            await self._denial.deny(saga)
            raise _refused(await self._file(saga)) from refused
        if file.customer.status is not CustomerStatus.PENDING:
            return file
        try:
            return await self._opening.open(saga, file, details)
        except OpeningRefused as refused:
            raise _refused(await self._file(saga)) from refused

    async def _file(self, saga: Saga) -> CustomerFile:
        async with saga.drive.transaction() as connection:
            return await self._parts.locked_file(
                connection, saga.name.tenant, saga.name.customer_id
            )

    async def _apply(self, saga: Saga, command: OnboardCustomer) -> StoredCustomer:
        """Store the application with the intent of its verification, once.

        Raises:
            AlreadyExists: the partner has a customer with this EIN, or a person or business with one of the ids.
            OutcomePending: for AlreadyExists, while this database may have gone back, or when another customer has
                just let go of the EIN.
        """
        application = self._application(saga, command)
        crash_point("onboarding.application.committing")
        try:
            recorded = await saga.drive.commit(RECORD_APPLICATION, application)
        except ApplicationConflict as conflict:
            if conflict.customer_id is None:
                raise OutcomePending from None
            async with saga.drive.transaction() as connection:
                await require_nothing_lost(connection)
            raise taken(str(conflict), conflict.customer_id) from None
        crash_point("onboarding.application.committed")
        saga.note_intent_committed(VERIFY_BUSINESS, recorded.begun)
        return recorded.customer

    def _application(self, saga: Saga, command: OnboardCustomer) -> Application:
        name, vault = saga.name, self._parts.store.vault
        business, account = command.business, command.external_bank_account
        if business.mailing_address is None:
            business = business.model_copy(update={"mailing_address": business.business_address})
        draft_id = derived(name.saga_id, "external_account")
        return Application(
            advance=Advance(saga=name, intent=saga.begin_intent(VERIFY_BUSINESS)),
            ein_digests=vault.ein_digests(business.ein),
            ein_last_four=masked(business.ein),
            business=vault.seal(business, customers.context_of(name.customer_id)),
            persons=[
                self._new_person(name, person, number)
                for number, person in enumerate(command.persons, start=1)
            ],
            draft_id=draft_id,
            draft=vault.seal(account, external_accounts.context_of(draft_id)),
            number_last_four=masked(account.account_number),
            number_digest=vault.number_digests(account)[0],
        )

    def _new_person(self, name: SagaName, person: Person, number: int) -> NewPerson:
        person_id = person.id or derived(name.saga_id, f"person.{number}")
        # Valid by the same rules already.
        fields = {name: value for name, value in person if name != "id"}
        details = PersonDetails.model_construct(**fields)
        context = persons.context_of(name.tenant, person_id)
        return NewPerson(
            person_id=person_id, details=self._parts.store.vault.seal(details, context)
        )

    async def _verify(
        self, saga: Saga, file: CustomerFile, details: CustomerDetails
    ) -> CustomerFile:
        """Verification of the business and of each person, each answer stored as it comes; the file afterwards."""
        identity, customer = self._parts.identity, file.customer

        async def announce(advance: Advance, answer: Verification) -> Begun | None:
            """From here on a provider knows of the customer: it is there to stay."""
            if VERIFY_BUSINESS in saga.found:
                await self._ask_after_loss(saga)
            return await saga.drive.commit(ANNOUNCE, replace(advance, business=answer))

        try:
            business = await saga.step_of_unknown_saga(
                VERIFY_BUSINESS,
                Verification,
                identity.verify_business(customer.customer_id, details.business, details.persons),
                record=announce,
                following=_verify_person(1),
            )
        except NothingSent as error:
            await self._take_back(saga.drive, file)
            raise Unavailable from error
        decided: CustomerFile | None = None
        for number, person in enumerate(file.persons, start=1):
            verify = identity.verify_person(
                person.person_id,
                person.customer_id,
                details.persons,
                number - 1,
                business.identity_id,
            )
            is_last = number == len(file.persons)
            decided = await self._verify_person(saga, number, person, verify, is_last=is_last)
        return decided or await self._decide(saga, Advance(saga=saga.name))

    async def _ask_after_loss(self, saga: Saga) -> None:
        """Have the provider asked once what it says now of a customer that the database may have lost.

        The feed may have been read again before the customer was known again. What it told of the customer was passed
        over then, and is not told a second time.
        """
        async with saga.drive.transaction() as connection:
            if await has_lost_history(connection):
                asking = decision(
                    derived(saga.name.saga_id, "ask after a loss"),
                    saga.name.tenant,
                    saga.name.customer_id,
                    None,
                    subscription_key=saga.drive.principal.subscription_key,
                    is_ordered=False,
                    is_asked_while_pending=True,
                )
                await inbox_acceptance.enqueue(connection, asking)

    async def _verify_person(
        self,
        saga: Saga,
        number: int,
        person: PersonRecord,
        verify: ProviderWrite[Verification],
        *,
        is_last: bool,
    ) -> CustomerFile | None:
        """The file afterwards, when the answer of the last person is stored now."""
        decided: list[CustomerFile] = []

        async def store(advance: Advance, answer: Verification) -> Begun | None:
            advance = replace(advance, person=(person.person_id, answer))
            if not is_last:
                return await saga.drive.commit(ADVANCE, advance)
            decided.append(await self._decide(saga, advance))
            return None

        await saga.step(
            _verify_person(number),
            Verification,
            verify,
            record=store,
            following=None if is_last else _verify_person(number + 1),
        )
        return decided[0] if decided else None

    async def _take_back(self, drive: Drive, file: CustomerFile) -> None:
        """Remove the stored application. If the command goes on, it stores the application again under the same ids."""
        customer = file.customer
        async with drive.transaction() as connection:
            await self._parts.store.customers.remove(
                connection, customer.tenant, customer.customer_id
            )

    async def _decide(self, saga: Saga, advance: Advance) -> CustomerFile:
        """Move the customer to what the verifications make together; approved, it stays pending until opened.

        Args:
            advance: the answer about the last person, where that is not stored yet.

        Raises:
            OutcomeAwaited: the identity provider has not decided; its feed tells when it has, and `apply_decision` has
                the command driven then.
        """
        parts, name = self._parts, saga.name
        stored = await saga.drive.commit(
            DECIDE, replace(advance, intent=saga.begin_intent(CREATE_CORE_BUSINESS))
        )
        file = stored.customer.file
        if file.verdict is CustomerStatus.APPROVED:
            saga.note_intent_committed(CREATE_CORE_BUSINESS, stored.begun)
            return file
        async with saga.drive.transaction() as connection:
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            overall = file.verdict
            if overall is CustomerStatus.APPROVED:
                # A decision was applied since the commit of DECIDE: the customer is approved with its account.
                return file
            following = states.following(file.customer.status, overall)
            if following is None:
                raise OutcomeAwaited(partial(self._is_undecided, name))
            await parts.move(connection, file, following)
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            crash_point("onboarding.verified.committing")
        crash_point("onboarding.verified.committed")
        return file

    async def _is_undecided(self, name: SagaName, connection: AsyncConnection) -> bool:
        file = await self._parts.store.file(connection, name.tenant, name.customer_id)
        assert file is not None, "customers are not removed once a provider knows of them"
        return file.verdict is CustomerStatus.PENDING


def _verify_person(number: int) -> str:
    return f"verify_person.{number}"


def _refused(file: CustomerFile) -> ProviderRefused:
    extra = {"customer_id": str(file.customer.customer_id)}
    if file.refusal is not None:
        extra["reason_detail"] = file.refusal
    return ProviderRefused(REFUSED, extra=extra)
