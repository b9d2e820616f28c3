"""The identity provider's later word on a business or person: an internal command, one for each entry of its feed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import BanksideError, OutcomePending
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence import inbox_acceptance, open_commands
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.inbox_acceptance import InternalCommand
from libs.runtime.crash import crash_point
from services.onboarding import states
from services.onboarding.handlers.amendment import refuse_to_overtake
from services.onboarding.handlers.opening import (
    CREATE_CORE_BUSINESS,
    Opening,
    OpeningRefused,
    saga_of,
)
from services.onboarding.handlers.parts import Parts
from services.onboarding.handlers.verdicts import follow_verdict, issues_of
from services.onboarding.ids import DECISION, derived
from services.onboarding.models import CustomerFile, Verification
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import steps


class ApplyDecision(msgspec.Struct, frozen=True):
    """The command's body.

    Args:
        customer_id: the business's.
        verification: None: the provider said only that something changed, and is asked.
        is_ordered: it waits for the customer's earlier commands. One about a customer that is pending does not: these
            wait for the onboarding, which may wait for it.
        is_asked_while_pending: the provider is asked also for an onboarding that waits for its verdict. A customer has
            one such decision at most, so that no two readings of a pending customer race.
    """

    customer_id: UUID
    verification: Verification | None = None
    is_ordered: bool = True
    is_asked_while_pending: bool = False


def decision(
    command_id: UUID,
    tenant: str,
    customer_id: UUID,
    verification: object,
    *,
    subscription_key: str,
    is_ordered: bool,
    is_asked_while_pending: bool = False,
) -> InternalCommand:
    """The command.

    Args:
        verification: encoded, as the feed has it.
    """
    return InternalCommand(
        command_id=command_id,
        operation=DECISION,
        ordering_key=ordering_key(tenant, customer_id) if is_ordered else None,
        principal=Principal(
            tenant=tenant,
            tenant_name="",
            family=Family.PARTNER,
            subscription_key=subscription_key,
        ),
        body={
            "customer_id": str(customer_id),
            "verification": verification,
            "is_ordered": is_ordered,
            "is_asked_while_pending": is_asked_while_pending,
        },
    )


class ApplyDecisionHandler:
    """Crash points besides those of the opening's steps: `onboarding.decision.committing` and `.committed`."""

    def __init__(self, parts: Parts, opening: Opening) -> None:
        self._parts = parts
        self._opening = opening

    async def __call__(self, drive: Drive, body: dict[str, Any]) -> Result:
        command = msgspec.convert(body, ApplyDecision)
        if command.is_ordered:
            await self._go_on_opening(drive, command.customer_id)
        else:
            async with drive.transaction() as connection:
                tenant = drive.principal.tenant
                file = await self._parts.store.file(connection, tenant, command.customer_id)
                if await self._requeue_in_order(connection, drive, command, file):
                    return Result()
        said = [command.verification] if command.verification else await self._ask(drive, command)
        async with drive.transaction() as connection:
            onboarding = await self._lock_onboarding(connection, drive, command)
            file = await self._apply(connection, drive, command, said)
            is_waited_for = file is not None and file.customer.status is CustomerStatus.PENDING
            if is_waited_for and onboarding is not None:
                await open_commands.make_due(connection, onboarding, unpark=False)
            crash_point("onboarding.decision.committing")
        crash_point("onboarding.decision.committed")
        if file is not None and not is_waited_for and _is_to_be_opened(file):
            async with drive.transaction() as connection:
                await refuse_to_overtake(connection, file.customer, file.customer.saga_id)
            await self._open(drive, file)
        return Result()

    async def _requeue_in_order(
        self,
        connection: AsyncConnection,
        drive: Drive,
        command: ApplyDecision,
        file: CustomerFile | None,
    ) -> bool:
        """Record a decision without an order anew, behind the customer's other commands, where the customer is not
        pending any more. Returns whether it was.
        """
        if command.is_ordered or file is None or file.customer.status is CustomerStatus.PENDING:
            return False
        await inbox_acceptance.enqueue(
            connection,
            decision(
                derived(drive.command_id, "in its turn"),
                drive.principal.tenant,
                command.customer_id,
                msgspec.to_builtins(command.verification),
                subscription_key=drive.principal.subscription_key,
                is_ordered=True,
            ),
        )
        return True

    async def _go_on_opening(self, drive: Drive, customer_id: UUID) -> None:
        """Carry an opening to its end that an earlier drive, or a decision that is parked, has begun. As an onboarding
        it does not look again: what core banking has would stay there without a customer, or its denial half-way.

        Raises:
            OutcomePending, NeedsOperator: as `Opening.open`.
        """
        async with drive.transaction() as connection:
            file = await self._parts.store.file(connection, drive.principal.tenant, customer_id)
            if file is None or file.customer.status in (CustomerStatus.PENDING, *states.FINAL):
                return
            saga = saga_of(drive, file.customer.saga_id, customer_id)
            if file.customer.core_id or not await steps.has_begun(
                connection, saga.name, CREATE_CORE_BUSINESS
            ):
                return
        await self._open(drive, file)

    async def _open(self, drive: Drive, file: CustomerFile) -> None:
        saga = saga_of(drive, file.customer.saga_id, file.customer.customer_id)
        with contextlib.suppress(OpeningRefused):  # the customer is denied; no caller waits
            await self._opening.open(saga, file)

    async def _ask(self, drive: Drive, command: ApplyDecision) -> list[Verification]:
        """What the provider now says otherwise of the customer and its persons, as versions after the known ones.

        It is asked when no other command can store what the provider said: commands of one customer are driven one at a
        time, and an onboarding, which has no order, is over or waits for a verdict. So no reading replaces one that
        was made later.

        Raises:
            OutcomePending: the onboarding is still under way, or the provider cannot be asked.
        """
        async with drive.transaction() as connection:
            file = await self._parts.store.file(
                connection, drive.principal.tenant, command.customer_id
            )
        if file is None or file.customer.status in states.FINAL:
            return []
        records = file.verifications
        if file.customer.status is CustomerStatus.PENDING:
            is_waited_for = file.verdict is CustomerStatus.PENDING
            if not (command.is_asked_while_pending and is_waited_for) or None in records:
                raise OutcomePending
        known = {record.identity_id: record for record in records if record is not None}
        business_id, *person_ids = known
        try:
            said = await self._parts.identity.current(business_id, person_ids)
        except BanksideError as error:
            raise OutcomePending from error
        return [
            msgspec.structs.replace(one, version=before.version + 1)
            for one in said
            if (before := known.get(one.identity_id)) is not None
            and (one.status, one.issues) != (before.status, before.issues)
        ]

    async def _apply(
        self,
        connection: AsyncConnection,
        drive: Drive,
        command: ApplyDecision,
        said: Sequence[Verification],
    ) -> CustomerFile | None:
        """Take the decisions over that are not known already; the file afterwards.

        Of a customer that is pending only what its onboarding waits for is taken over: from its last verification on,
        the onboarding opens the account without looking again.

        Raises:
            OutcomePending: the onboarding is still under way, and what the decision is about is not known before it is
                over.
        """
        parts, tenant, customer_id = self._parts, drive.principal.tenant, command.customer_id
        file = await parts.store.file(connection, tenant, customer_id, lock=True)
        if file is None or file.customer.status in states.FINAL:
            return file
        if await self._requeue_in_order(connection, drive, command, file):
            return None
        if file.customer.status is CustomerStatus.PENDING:
            if all(_is_known(file, one) for one in said):
                return None
            is_waited_for = file.verdict is CustomerStatus.PENDING
            if not (is_waited_for and all(_is_of(file, one) for one in said)):
                raise OutcomePending
            await self._take_over(connection, file, said)
            return file
        before = issues_of(file)
        await self._take_over(connection, file, said)
        file = await parts.locked_file(connection, tenant, customer_id)
        verdict = file.verdict
        current = file.customer.status
        if verdict in (current, CustomerStatus.PENDING) or _is_to_be_opened(file):
            if verdict is current and issues_of(file) != before:
                # What is wanted has changed, and the state has not: the last event tells of what was wanted before.
                is_wanted = current is CustomerStatus.AWAITING_DOCUMENTS
                name = states.EVENTS[current] if is_wanted else "customer.updated"
                await parts.events.of_customer(connection, name, file.customer)
            return file
        return await follow_verdict(connection, parts, file)

    async def _lock_onboarding(
        self, connection: AsyncConnection, drive: Drive, command: ApplyDecision
    ) -> UUID | None:
        """The command of an onboarding that may wait for the decision, locked. It may rest for minutes: the commit by
        which the decision is taken over makes it due.

        As an onboarding does, the decision locks the command before the customer.
        """
        tenant = drive.principal.tenant
        customer = await self._parts.store.customers.find(connection, tenant, command.customer_id)
        if customer is None or customer.status is not CustomerStatus.PENDING:
            return None
        command_id = await steps.command_of(connection, tenant, customer.saga_id)
        if command_id is not None:
            await open_commands.lock(connection, command_id)
        return command_id

    async def _take_over(
        self, connection: AsyncConnection, file: CustomerFile, said: Sequence[Verification]
    ) -> None:
        parts, customer = self._parts, file.customer
        for one in said:
            if _is_newer(customer.verification, one):
                await parts.store.customers.set_verification(connection, customer, one)
        for person in file.persons:
            newer = [one for one in said if _is_newer(person.verification, one)]
            if newer:
                await parts.store.persons.set_verification(connection, person, newer[-1])
                now = await parts.locked_file(connection, customer.tenant, customer.customer_id)
                await parts.events.of_person(
                    connection, "person.updated", now.person(person.person_id)
                )


def _is_of(file: CustomerFile, verification: Verification) -> bool:
    """Whether the record is the customer's or one of its persons'."""
    return any(
        known.identity_id == verification.identity_id
        for known in file.verifications
        if known is not None
    )


def _is_known(file: CustomerFile, verification: Verification) -> bool:
    """Whether this version of the record, or a later one, is taken over already."""
    return any(
        known.identity_id == verification.identity_id and known.version >= verification.version
        for known in file.verifications
        if known is not None
    )


def _is_newer(known: Verification | None, verification: Verification) -> bool:
    """Of the same record and not known yet. A record that we do not know counts as not newer."""
    return (
        known is not None
        and known.identity_id == verification.identity_id
        and known.version < verification.version
    )


def _is_to_be_opened(file: CustomerFile) -> bool:
    """All are approved and the account is not open yet: approval comes with the account."""
    return (
        file.customer.core_id is None  # recorded together with the account
        and file.verdict is CustomerStatus.APPROVED
        and states.may_follow(file.customer.status, CustomerStatus.APPROVED)
    )
