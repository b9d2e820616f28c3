"""Adding an external bank account, which becomes the primary one (interface §6)."""

from __future__ import annotations

from uuid import UUID

import msgspec

from libs.contracts.customer_views import ExternalBankAccountAdded
from libs.contracts.customers import AddExternalBankAccount, CustomerStatus
from libs.contracts.errors import (
    AlreadyExists,
    NotFound,
    OutcomePending,
    ProviderRefused,
    Unavailable,
)
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance
from libs.persistence.lost_history import require_nothing_lost
from libs.providers.outcomes import Reason
from libs.runtime.crash import crash_point
from services.onboarding.handlers.amendment import refuse_to_overtake, refuse_when_final
from services.onboarding.handlers.parts import Parts
from services.onboarding.ids import derived
from services.onboarding.models import CustomerRecord
from services.onboarding.ordering import ordering_key
from services.onboarding.ports import LinkedAccount
from services.onboarding.repository import steps
from services.onboarding.repository.sagas import saga_id_of
from services.onboarding.repository.step_commits import Advance
from services.onboarding.saga import NothingSent, Saga, StepRefused, saga_of_change

STEP = "add_external_account"


class AddExternalBankAccountHandler:
    """Crash points besides those of the step: `onboarding.external_account_added.committing` and `.committed`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, drive: Drive, command: AddExternalBankAccount) -> Result:
        saga_id = await saga_id_of(drive)
        draft_id = derived(saga_id, "external_account")
        prepared = await self._prepare(drive, command, saga_id, draft_id)
        if isinstance(prepared, str):
            return _added(prepared)
        saga = saga_of_change(drive, saga_id, prepared.customer_id)
        assert prepared.core_id is not None, (
            "a customer with an external account is at core banking"
        )
        recorded: list[LinkedAccount] = []

        async def record(_: Advance, linked: LinkedAccount) -> None:
            await self._record(saga, prepared, command, draft_id, linked)
            recorded.append(linked)

        try:
            linked = await saga.step_of_unknown_saga(
                STEP,
                LinkedAccount,
                self._parts.core.link_external_account(
                    prepared.core_id, command.external_bank_account
                ),
                record=record,
            )
        except NothingSent as error:
            raise Unavailable from error
        except StepRefused as refused:
            if refused.reason is Reason.ALREADY_LINKED:
                raise _already_linked() from refused
            raise ProviderRefused(
                "Core banking refused the account; nothing was changed.",
                extra={"reason_detail": refused.words},
            ) from refused
        if not recorded:
            # The step was done before this drive, and its answer stored apart from the account.
            await self._record(saga, prepared, command, draft_id, linked)
        return _added(linked.external_account_id)

    async def _prepare(
        self, drive: Drive, command: AddExternalBankAccount, saga_id: UUID, draft_id: UUID
    ) -> CustomerRecord | str:
        """Whose external account it will be; the new id when an earlier run came to the end.

        Raises:
            NotFound, InvalidState, AlreadyExists: the caller's fault.
            OutcomePending: its onboarding is not over; or for NotFound and AlreadyExists, while this database may have
                gone back.
            NeedsOperator: an earlier change of the customer is not over.
        """
        tenant, store = drive.principal.tenant, self._parts.store
        # An account that was lost is linked again by its own command: this one may be older, and have no order yet.
        async with drive.database.transaction() as connection:
            owner = await store.external_accounts.customer_of(
                connection, tenant, command.external_bank_account_id
            )
            if owner is None:
                await require_nothing_lost(connection)
                raise NotFound
            key = ordering_key(tenant, owner)
            has_just_got_one = await inbox_acceptance.give_order(connection, drive.command_id, key)
        if has_just_got_one:
            raise OutcomePending
        async with drive.transaction() as connection:
            done = await store.external_accounts.find_draft(connection, tenant, draft_id)
            if done is not None and done.external_account_id is not None:
                return done.external_account_id
            customer = (await self._parts.locked_file(connection, tenant, owner)).customer
            # What has begun is driven to its end, also when the customer's came before it.
            if not await steps.has_saga_begun(connection, tenant, saga_id):
                refuse_when_final(customer)
            if customer.status is CustomerStatus.PENDING:
                raise OutcomePending
            await refuse_to_overtake(connection, customer, saga_id)
            if await store.external_accounts.has_number(
                connection, tenant, customer.customer_id, command.external_bank_account
            ):
                await require_nothing_lost(connection)
                raise _already_linked()
        return customer

    async def _record(
        self,
        saga: Saga,
        customer: CustomerRecord,
        command: AddExternalBankAccount,
        draft_id: UUID,
        linked: LinkedAccount,
    ) -> None:
        """The one commit of the external account and of the answer: an id that cannot be the customer's leaves the step
        to another decision of an operator.
        """
        parts, tenant, customer_id = self._parts, customer.tenant, customer.customer_id
        external = parts.store.external_accounts
        async with saga.drive.transaction() as connection:
            await parts.locked_file(connection, tenant, customer_id)
            await external.add_draft(
                connection,
                draft_id=draft_id,
                tenant=tenant,
                customer_id=customer_id,
                account=command.external_bank_account,
            )
            draft = await external.find_draft(connection, tenant, draft_id)
            assert draft is not None
            await external.link(connection, draft, linked.external_account_id)
            added = await external.find_draft(connection, tenant, draft_id)
            assert added is not None
            for name in ("external_account.created", "external_account.primary_changed"):
                await parts.events.of_external_account(connection, name, added)
            await steps.set_done(connection, saga.name, STEP, msgspec.to_builtins(linked))
            crash_point("onboarding.external_account_added.committing")
        crash_point("onboarding.external_account_added.committed")


def _added(external_account_id: str) -> Result:
    return Result(data=ExternalBankAccountAdded(external_bank_account_id=external_account_id))


def _already_linked() -> AlreadyExists:
    return AlreadyExists("An external bank account with this number is linked already.")
