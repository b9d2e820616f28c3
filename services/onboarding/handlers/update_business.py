"""Update of a business (interface §6)."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.customers import Business, CustomerStatus, UpdateBusiness
from libs.contracts.errors import (
    Invalid,
    NotFound,
    OutcomePending,
    ProviderRefused,
    Unavailable,
)
from libs.contracts.ids import id_of
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.lost_history import require_nothing_lost
from libs.runtime.crash import crash_point
from services.onboarding import amending, states
from services.onboarding.handlers.amendment import (
    REFUSED,
    REFUSED_BY_CORE,
    Amendment,
    NotAmended,
    follow_answer,
    identity_id_of,
    is_news,
    refuse_to_overtake,
    refuse_what_has_begun,
    refuse_when_final,
    taken,
    write_to_providers,
)
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerRecord, Verification
from services.onboarding.repository import ein_holds, steps
from services.onboarding.repository.sagas import saga_id_of
from services.onboarding.saga import NothingSent, StepRefused, saga_of_change


class UpdateBusinessHandler:
    """Crash points besides those of the steps: `onboarding.business_updated.committing` and `.committed`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, drive: Drive, command: UpdateBusiness) -> Result:
        saga_id, customer_id = await saga_id_of(drive), id_of(command.customer_id)
        try:
            customer, business, amended = await self._prepare(drive, command, saga_id)
            if amended == business:
                return Result()
            written = await write_to_providers(
                saga_of_change(drive, saga_id, customer_id),
                self._amendment(customer, business, amended),
            )
        except NothingSent as error:
            await self._keep_ein_of(drive, customer_id)
            raise Unavailable from error
        except (StepRefused, NotAmended) as error:
            await self._keep_ein_of(drive, customer_id)
            detail = REFUSED if isinstance(error, StepRefused) else REFUSED_BY_CORE
            raise ProviderRefused(detail, extra={"reason_detail": error.words}) from error
        await self._record(drive, customer, amended, written.verification)
        return Result()

    def _amendment(
        self, customer: CustomerRecord, business: Business, amended: Business
    ) -> Amendment[Business]:
        identity, core = self._parts.identity, self._parts.core
        return Amendment(
            business,
            amended,
            identity_id_of(customer.verification),
            customer.core_id,
            lambda identity_id, changes, _: identity.update_business(identity_id, changes),
            lambda core_id, changes, *_: core.change_business(core_id, changes),
        )

    async def _prepare(
        self, drive: Drive, command: UpdateBusiness, saga_id: UUID
    ) -> tuple[CustomerRecord, Business, Business]:
        """The customer, its business, and that as it is to be, whose EIN the customer holds from here on; one that is
        denied or canceled holds none.

        Raises:
            NotFound, InvalidState, Invalid, AlreadyExists: the caller's fault.
            OutcomePending: its onboarding is not over; or another customer has just let go of the EIN; or for NotFound
                and AlreadyExists, while this database may have gone back.
            NeedsOperator: an earlier change of the customer is not over, or as `refuse_what_has_begun`.
            StepRefused: as `refuse_what_has_begun`.
        """
        tenant, store = drive.principal.tenant, self._parts.store
        customer_id = id_of(command.customer_id)
        async with drive.transaction() as connection:
            customer = await store.customers.find(connection, tenant, customer_id, lock=True)
            if customer is None:
                await require_nothing_lost(connection)
                raise NotFound
            has_begun = await steps.has_saga_begun(connection, tenant, saga_id)
            # What has begun is driven to its end, also when the customer's came before it.
            if not has_begun:
                refuse_when_final(customer)
            if customer.status is CustomerStatus.PENDING:
                raise OutcomePending
            await refuse_to_overtake(connection, customer, saga_id)
            business = await store.customers.business(connection, customer)
            try:
                amended = amending.amended_business(business, command.business)
            except Invalid as refused:
                if not has_begun:
                    raise
                await refuse_what_has_begun(connection, tenant, saga_id, refused)
            if customer.status not in states.FINAL:
                await self._take_ein(connection, customer, amended)
        return customer, business, amended

    async def _take_ein(
        self, connection: AsyncConnection, customer: CustomerRecord, amended: Business
    ) -> None:
        """
        Raises:
            AlreadyExists: the EIN is another customer's.
            OutcomePending: likewise, while this database may have gone back; or that customer has just let go of it.
        """
        digests = self._parts.store.vault.ein_digests(amended.ein)
        customer_id = customer.customer_id
        holders = await ein_holds.take(connection, customer.tenant, customer_id, digests)
        if not holders:
            raise OutcomePending
        if holders != [customer_id]:
            await require_nothing_lost(connection)
            other = next(holder for holder in holders if holder != customer_id)
            raise taken(ein_holds.EIN_TAKEN, other)

    async def _keep_ein_of(self, drive: Drive, customer_id: UUID) -> None:
        """Let go of the EIN that the change would have given the customer."""
        tenant, store = drive.principal.tenant, self._parts.store
        async with drive.transaction() as connection:
            # Every change of what a customer holds is made under its lock.
            customer = await store.customers.find(connection, tenant, customer_id, lock=True)
            assert customer is not None, "customers are never deleted"
            business = await store.customers.business(connection, customer)
            digests = store.vault.ein_digests(business.ein)
            await ein_holds.keep_only(connection, tenant, customer_id, digests)

    async def _record(
        self, drive: Drive, customer: CustomerRecord, amended: Business, answer: Verification
    ) -> None:
        parts, tenant, customer_id = self._parts, customer.tenant, customer.customer_id
        async with drive.transaction() as connection:
            file = before = await parts.locked_file(connection, tenant, customer_id)
            await parts.store.customers.set_business(connection, customer, amended)
            await ein_holds.keep_only(
                connection, tenant, customer_id, parts.store.vault.ein_digests(amended.ein)
            )
            has_news = is_news(file.customer.verification, answer)
            if has_news:
                await parts.store.customers.set_verification(connection, customer, answer)
            await parts.events.of_customer(connection, "customer.updated", customer)
            if has_news:
                file = await parts.locked_file(connection, tenant, customer_id)
                await follow_answer(connection, parts, before, file)
            crash_point("onboarding.business_updated.committing")
        crash_point("onboarding.business_updated.committed")
