"""Wire policies: set by the partner of a customer, read by both."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row

from libs.contracts import wire_policies as contract
from libs.contracts.errors import Invalid, NotFound
from libs.contracts.operating import wire_policies as operating
from libs.contracts.operating.pages import Listed, Place, cut
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence.engine import Database
from libs.runtime.crash import crash_point
from services.payments.effective_policies import EffectivePolicies
from services.payments.policies import Policy
from services.payments.ports import OWNERSHIP_SECONDS, Ownership
from services.payments.repository import policies
from services.payments.repository.policies import StoredPolicy


class SetWirePolicyHandler:
    def __init__(self, ownership: Ownership, effective: EffectivePolicies) -> None:
        self._ownership = ownership
        self._effective = effective

    async def __call__(self, drive: Drive, command: contract.SetWirePolicy) -> Result:
        stored = await self._resume(drive, command) if drive.attempt > 1 else None
        if stored is None:
            stored = await self._set(drive, command)
        return Result(data=_view(self._effective, command.customer_id, stored))

    async def _resume(self, drive: Drive, command: contract.SetWirePolicy) -> StoredPolicy | None:
        """The stored policy, if this command (in an earlier drive) or a later one has set it; else None. It is returned
        even if this command would be refused now: the later accepted command wins.
        """
        async with drive.transaction() as connection:
            sequence = await policies.sequence_of(connection, drive.command_id)
            return await policies.find_set_since(
                connection, drive.principal.tenant, command.customer_id, sequence
            )

    async def _set(self, drive: Drive, command: contract.SetWirePolicy) -> StoredPolicy:
        policy = Policy(**command.model_dump(exclude={"customer_id"}))
        if above := policy.beyond(self._effective.ceilings):
            raise Invalid([_above_ceiling(self._effective.ceilings, name) for name in above])
        await self._ownership.require_customer(
            drive.principal, command.customer_id, time.time() + OWNERSHIP_SECONDS
        )
        stored = StoredPolicy(policy, datetime.now(UTC))
        async with drive.transaction() as connection:
            stored = await policies.set_policy(
                connection,
                drive.principal.tenant,
                command.customer_id,
                stored,
                await policies.sequence_of(connection, drive.command_id),
            )
            crash_point("payments.setting_policy")
        crash_point("payments.set_policy")
        return stored


class PolicyQueries:
    def __init__(
        self, database: Database, ownership: Ownership, effective: EffectivePolicies
    ) -> None:
        self._database = database
        self._ownership = ownership
        self._effective = effective

    async def get_of_customer(
        self, principal: Principal, command: contract.GetWirePolicy, deadline: float
    ) -> Result:
        await self._ownership.require_customer(principal, command.customer_id, deadline)
        return await self._find(principal.tenant, command.customer_id)

    async def get_own(
        self, principal: Principal, _: contract.GetOwnWirePolicy, __: float
    ) -> Result:
        if principal.customer_id is None:
            raise NotFound
        return await self._find(principal.tenant, principal.customer_id)

    async def list_of_all(
        self, _: Principal, command: operating.ListOperatorWirePolicies, __: float
    ) -> Result:
        async with self._database.transaction() as connection:
            found = await policies.page(connection, command)
        rows, following = cut(found, command.limit, _place)
        return Result(
            data=Listed[operating.OperatorWirePolicy](
                items=[operating.OperatorWirePolicy(**row._mapping) for row in rows],
                next=following,
            )
        )

    async def _find(self, tenant: str, customer_id: str) -> Result:
        async with self._database.transaction() as connection:
            stored = await policies.find(connection, tenant, customer_id)
        return Result(data=_view(self._effective, customer_id, stored))


def _view(
    effective: EffectivePolicies, customer_id: str, stored: StoredPolicy | None
) -> contract.WirePolicy:
    return contract.WirePolicy(
        customer_id=customer_id,
        **effective.in_force(stored).values(),
        updated_at=stored.updated_at if stored else None,
    )


def _place(row: Row[Any]) -> Place:
    return Place(row.updated_at, row.customer_id)


def _above_ceiling(ceilings: Policy, name: str) -> dict[str, object]:
    ceiling = getattr(ceilings, name)
    return {
        "loc": ["body", name],
        "msg": f"Input should be less than or equal to {ceiling}, the ceiling of this installation",
        "type": "less_than_equal",
        "ctx": {"le": ceiling},
    }
