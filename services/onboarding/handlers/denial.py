"""Denying an application that a provider would not have: what was begun is taken back, then the customer is denied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from libs.contracts.customers import CustomerStatus
from libs.runtime.crash import crash_point
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import Verification
from services.onboarding.saga import Saga

Undo = Callable[[], Awaitable[object]]


class Denial:
    """Crash points besides those of the compensations: `onboarding.denied.committing` and `.committed`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def deny(self, saga: Saga, undo: Sequence[Undo] = ()) -> None:
        """Take back `undo`, the last first, and all identity records; then deny.

        Raises:
            OutcomePending: run the saga again.
        """
        parts, name = self._parts, saga.name
        for compensation in reversed(undo):
            await compensation()
        await self._cancel_identities(saga)
        async with saga.drive.transaction() as connection:
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            await parts.announce(connection, file)
            await parts.move(connection, file, CustomerStatus.DENIED, refused_by_provider=True)
            crash_point("onboarding.denied.committing")
        crash_point("onboarding.denied.committed")

    async def _cancel_identities(self, saga: Saga) -> None:
        parts, name = self._parts, saga.name
        async with saga.drive.transaction() as connection:
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
        for number, verification in enumerate(file.verifications):
            if verification is None:
                continue
            if number:
                step = f"cancel_identity_person.{number}"
                cancel = parts.identity.cancel_person(verification.identity_id)
            else:
                step = "cancel_identity_business"
                cancel = parts.identity.cancel_business(verification.identity_id)
            await saga.compensate(step, Verification, cancel)
