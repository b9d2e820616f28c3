"""The steps of one onboarding that a test sends by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from sqlalchemy import text

from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.handling.commands import Drive
from libs.persistence import inbox
from libs.persistence.engine import Database
from libs.providers.outcomes import Reason, Refused
from libs.providers.writing import Capabilities
from services.onboarding.ports import OpenedAccount
from services.onboarding.repository.step_cases import Resolution
from services.onboarding.repository.step_commits import ADVANCE, Advance
from services.onboarding.repository.steps import Begun, SagaName
from services.onboarding.resolving import resolve_step
from services.onboarding.saga import Saga
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import partner
from tests.integration.onboarding.scripted import ScriptedWrite

OPERATION = "onboarding.onboard_customer"
STEP = "open_account"
ACCOUNT = OpenedAccount("acc_1", "7000000001")
NO = Refused(Reason.PROVIDER_REFUSED, "refused")
ANN = Principal(
    tenant="", tenant_name="", family=Family.OPERATOR, subscription_key="sub_a", operator="ann"
)
TRANSIT_SECONDS = 60.0
OF_A_DAY = Capabilities(
    keys_remembered_seconds=24 * 3600.0, longest_transit_seconds=TRANSIT_SECONDS
)


@dataclass
class Steps:
    """One saga of one step, driven again and again."""

    database: Database
    name: SagaName
    leased: inbox.Leased
    write: ScriptedWrite[OpenedAccount] = field(
        default_factory=lambda: ScriptedWrite(ACCOUNT, capabilities=OF_A_DAY)
    )
    recorded: list[str] = field(default_factory=list)
    """Accounts whose opening was recorded."""
    fails_to_record: bool = False
    """As where an account cannot be the customer's."""
    before_recording: Callable[[], Awaitable[None]] | None = None
    """What happens between the step's answer and its commit."""

    async def accept_as(self, command_id: UUID) -> None:
        self.leased = await driving.accept(
            self.database, OPERATION, partner(), command_id=command_id
        )

    async def drive(self) -> OpenedAccount:
        async def run(saga: Saga) -> OpenedAccount:
            async def record(advance: Advance, account: OpenedAccount) -> Begun | None:
                assert not self.fails_to_record
                if self.before_recording is not None:
                    await self.before_recording()
                self.recorded.append(account.account_id)
                return await saga.drive.commit(ADVANCE, advance)

            return await saga.step(STEP, OpenedAccount, self.write, record=record)

        return await self._drive(run)

    async def drive_first(self) -> OpenedAccount:
        return await self._drive(
            lambda saga: saga.step_of_unknown_saga(STEP, OpenedAccount, self.write)
        )

    async def _drive(self, run: Callable[[Saga], Awaitable[OpenedAccount]]) -> OpenedAccount:
        got: list[OpenedAccount] = []

        async def handle(drive: Drive, _: Any) -> Result:
            got.append(await run(Saga(drive, self.name)))
            return Result()

        handlers = {OPERATION: handle}
        await driving.drive(self.database, handlers, self.leased, partner(), None)
        return got[0]

    async def row(self) -> Any:
        async with self.database.transaction() as connection:
            rows = await connection.execute(
                text("SELECT * FROM saga_steps WHERE saga_id = :id"), {"id": self.name.saga_id}
            )
            return rows.one_or_none()

    async def make_older(self, seconds: float) -> None:
        """As if everything about the step had happened so much earlier."""
        async with self.database.transaction() as connection:
            await connection.execute(
                text(
                    "UPDATE saga_steps SET first_sent_at = first_sent_at - make_interval(secs => :s),"
                    " last_sent_at = last_sent_at - make_interval(secs => :s) WHERE saga_id = :id"
                ),
                {"id": self.name.saga_id, "s": seconds},
            )

    async def end_lease(self, *, seconds: float = 3600) -> None:
        """As the driver does when the outcome is not known, until so much later."""
        async with self.database.transaction() as connection:
            await inbox.postpone(connection, self.leased, seconds=seconds, error="outcome_pending")

    async def lease_runs_out(self) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(
                text("UPDATE inbox SET lease_until = clock_timestamp() WHERE command_id = :id"),
                {"id": self.leased.command_id},
            )

    async def is_resting(self) -> bool:
        """Whether its command is not due."""
        async with self.database.transaction() as connection:
            found = await connection.execute(
                text("SELECT due_at > clock_timestamp() FROM inbox WHERE command_id = :id"),
                {"id": self.leased.command_id},
            )
            return bool(found.scalar_one())

    async def lease_again(self) -> None:
        self.leased = await driving.claim_again(self.database, self.leased)

    async def resolve(self, resolution: Resolution, result: Any = None) -> None:
        await resolve_step(
            self.database,
            ANN,
            self.name.saga_id,
            STEP,
            resolution,
            reason="the bank said so",
            transit_seconds=TRANSIT_SECONDS,
            result=result,
        )
