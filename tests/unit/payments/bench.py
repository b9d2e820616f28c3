"""The handlers of payments in the test's own process: a real database, a real HTTP client, a bank of the test's own.

There is no sweeper, feed tail or outbox relay: each drive is one that the test makes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import text

from deploy.local.ports import LOOPBACK
from libs.contracts.errors import InvalidState
from libs.contracts.exact_json import encode
from libs.contracts.payments_operations import (
    APPROVE_WIRE,
    CANCEL_WIRE,
    DECLINE_WIRE,
    SEND_WIRE,
    SET_WIRE_POLICY,
)
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.wire_policies import SetWirePolicy, WirePolicy
from libs.contracts.wires import ApproveWire, CancelWire, DeclineWire, SendWire, WireState
from libs.handling.commands import Drive
from libs.handling.group_commit import GroupCommit
from libs.persistence import inbox, inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from libs.persistence.engine import Database, open_database
from libs.persistence.inbox_acceptance import NewCommand
from libs.persistence.leased_writes import LeasedValue
from libs.providers.feed_entries import FeedCursor
from libs.providers.sandbox.http import ProviderClient
from libs.providers.sessions import open_session
from libs.providers.writing import Capabilities
from services.payments import states
from services.payments.adapters.sandbox.core import CoreFeed, SandboxCoreBanking
from services.payments.customer_turns import CustomerTurns
from services.payments.effective_policies import EffectivePolicies
from services.payments.handlers import feed
from services.payments.handlers.approvals import ApproveWireHandler, DeclineWireHandler
from services.payments.handlers.cancel_wire import CancelWireHandler
from services.payments.handlers.policies import SetWirePolicyHandler
from services.payments.handlers.send_wire import SendWireHandler
from services.payments.handlers.sending import Sending
from services.payments.models import Creditor, Payee, PostalAddress, Step, WireRecord
from services.payments.policies import Policy
from services.payments.ports import CoreBanking, Ownership
from services.payments.repository import send_writes, wires
from tests.integration.tables import finish
from tests.support.fake_core import Account, FakeCore, serving
from tests.support.ids import made_id
from tests.support.infrastructure import Environment
from tests.support.ports import free_ports
from tests.support.waiting import eventually

KEY_SECONDS = 24 * 3600.0
TRANSIT_SECONDS = 60.0
LEASE_SECONDS = 60.0
MINE = Principal("t_1", "Tenant", Family.CUSTOMER, "sub_1", "c_1")
STRANGERS = [
    Principal("t_1", "Tenant", Family.CUSTOMER, "sub_2", "c_2"),
    Principal("t_2", "Other", Family.CUSTOMER, "sub_3", "c_1"),
]
COMMAND = SendWire(
    sending_account_id="acc_1",
    external_account_id="ext_1",
    amount=Decimal("10.00"),
    purpose="Invoice 2047",
)


CREDITOR = Creditor(
    "Tidewater Goods LLC", PostalAddress("1 Main Street", "Norfolk", "VA", "23510", "US")
)


@dataclass
class EveryAccountIsOwned:
    """See `ports.Ownership`."""

    linked_at: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    is_denied: bool = False

    async def require_account(self, principal: Principal, account_id: str, deadline: float) -> None:
        pass

    async def require_external_account(
        self, principal: Principal, external_account_id: str, deadline: float
    ) -> Payee:
        return Payee(CREDITOR, self.linked_at)

    async def require_open_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        if self.is_denied:
            raise InvalidState

    async def require_customer(
        self, principal: Principal, customer_id: str, deadline: float
    ) -> None:
        pass


@dataclass
class Bench:
    database: Database
    core: FakeCore
    bank: CoreBanking
    feed: CoreFeed
    group_commit: GroupCommit
    owner: Principal = MINE
    """Whose wires it sends."""
    is_denied: bool = False
    """Whether that customer is."""

    async def accepted(self, principal: Principal | None = None) -> inbox.Leased:
        """A send that was accepted and is leased to the test; there is no wire yet."""
        principal = principal or self.owner
        return await self._accept(SEND_WIRE.name, principal, COMMAND)

    async def wire(
        self,
        *later: WireState,
        first_sent_seconds_ago: float | None = None,
    ) -> inbox.Leased:
        """A wire with its send, which is driven by the test; without an age nothing of it was sent."""
        leased = await self.accepted()
        now = datetime.now(UTC)
        wire = WireRecord(
            transaction_id=leased.command_id,
            tenant=self.owner.tenant,
            customer_id=self.owner.customer_id or "",
            sending_account_id=COMMAND.sending_account_id,
            external_account_id=COMMAND.external_account_id,
            amount=COMMAND.amount,
            purpose=COMMAND.purpose,
            send_age_seconds=None,
            last_sent_at=None,
            last_send_age_seconds=None,
            canceled_by=None,
            created_at=now,
            creditor=CREDITOR,
            history=(Step(WireState.PENDING_SUBMISSION, now, None),),
        )
        await self.group_commit.commit(send_writes.INTENT, LeasedValue(leased, wire))
        async with self.database.transaction() as connection:
            for state in later:
                wire = states.advance(wire, state, at=now)
                assert await wires.save(connection, wire)
        await self.date_first_send(leased, first_sent_seconds_ago)
        return leased

    async def date_first_send(self, leased: inbox.Leased, seconds_ago: float | None) -> None:
        """As if the first send of the wire had begun so long ago; None: as if none had."""
        async with self.database.transaction() as connection:
            await connection.execute(
                text(
                    "UPDATE wires SET send_begun_at = statement_timestamp() - make_interval(secs => :ago),"
                    " last_sent_at = statement_timestamp() - make_interval(secs => :ago)"
                    " WHERE transaction_id = :id"
                ),
                {"id": leased.command_id, "ago": seconds_ago},
            )

    async def send(
        self,
        leased: inbox.Leased,
        *,
        attempt: int = 2,
        lease_seconds: float = LEASE_SECONDS,
        bank: CoreBanking | None = None,
        effective: EffectivePolicies | None = None,
        turns: CustomerTurns | None = None,
        linked_at: datetime | None = None,
        command: SendWire = COMMAND,
    ) -> Result:
        """One drive of a send."""
        owned = EveryAccountIsOwned(is_denied=self.is_denied)
        owned.linked_at = linked_at or owned.linked_at
        sending = Sending(bank or self.bank, lease_seconds=lease_seconds)
        handler = SendWireHandler(
            owned, sending, effective or EffectivePolicies(), turns or CustomerTurns()
        )
        return await handler(self._drive(leased, self.owner, attempt), command)

    async def set_policy(self, policy: Policy) -> None:
        """That of the customer whose wires the bench sends."""
        await self.drive_policy(await self.accepted_policy(policy), policy)

    async def accepted_policy(self, policy: Policy) -> inbox.Leased:
        return await self._accept(SET_WIRE_POLICY.name, self.owner, self._policy_command(policy))

    async def drive_policy(
        self,
        leased: inbox.Leased,
        policy: Policy,
        *,
        attempt: int = 1,
        ownership: Ownership | None = None,
        effective: EffectivePolicies | None = None,
    ) -> WirePolicy:
        """One drive of a command that sets the policy."""
        drive = self._drive(leased, self.owner, attempt)
        handler = SetWirePolicyHandler(
            ownership or EveryAccountIsOwned(), effective or EffectivePolicies()
        )
        result = await handler(drive, self._policy_command(policy))
        assert isinstance(result.data, WirePolicy)
        return result.data

    def _policy_command(self, policy: Policy) -> SetWirePolicy:
        return SetWirePolicy(customer_id=self.owner.customer_id or "", **policy.values())

    async def waiting(self) -> UUID:
        """A wire that waits for approval."""
        await self.set_policy(Policy(approval_threshold=Decimal(1)))
        leased = await self.accepted()
        await self.send(leased, attempt=1)
        return leased.command_id

    async def accepted_approval(self, transaction_id: UUID, principal: Principal) -> inbox.Leased:
        command = ApproveWire(transaction_id=str(transaction_id))
        return await self._accept(APPROVE_WIRE.name, principal, command)

    async def approve(
        self,
        transaction_id: UUID,
        principal: Principal,
        *,
        leased: inbox.Leased | None = None,
        attempt: int = 1,
    ) -> Result:
        """One drive of an approval; of a new one unless it is given."""
        leased = leased or await self.accepted_approval(transaction_id, principal)
        sending = Sending(self.bank, lease_seconds=LEASE_SECONDS)
        command = ApproveWire(transaction_id=str(transaction_id))
        owned = EveryAccountIsOwned(is_denied=self.is_denied)
        handler = ApproveWireHandler(owned, sending, EffectivePolicies(), CustomerTurns())
        return await handler(self._drive(leased, principal, attempt), command)

    async def accepted_decline(self, transaction_id: UUID, principal: Principal) -> inbox.Leased:
        return await self._accept(DECLINE_WIRE.name, principal, self._decline(transaction_id))

    async def decline(
        self,
        transaction_id: UUID,
        principal: Principal,
        *,
        leased: inbox.Leased | None = None,
        attempt: int = 1,
    ) -> Result:
        """One drive of a decline; of a new one unless it is given."""
        leased = leased or await self.accepted_decline(transaction_id, principal)
        drive = self._drive(leased, principal, attempt)
        return await DeclineWireHandler()(drive, self._decline(transaction_id))

    @staticmethod
    def _decline(transaction_id: UUID) -> DeclineWire:
        return DeclineWire(transaction_id=str(transaction_id), reason="Not ours")

    async def accepted_cancellation(
        self, transaction_id: UUID, principal: Principal | None = None
    ) -> inbox.Leased:
        command = CancelWire(transaction_id=str(transaction_id))
        return await self._accept(CANCEL_WIRE.name, principal or self.owner, command)

    async def cancel(
        self,
        transaction_id: UUID,
        principal: Principal | None = None,
        *,
        leased: inbox.Leased | None = None,
        attempt: int = 1,
    ) -> Result:
        """One drive of a cancellation; of a new one unless it is given."""
        principal = principal or self.owner
        leased = leased or await self.accepted_cancellation(transaction_id, principal)
        drive = self._drive(leased, principal, attempt)
        return await CancelWireHandler()(drive, CancelWire(transaction_id=str(transaction_id)))

    async def finish(self, leased: inbox.Leased) -> None:
        """As the driver does when the answer is final."""
        await finish(self.database, leased, b"")

    async def let_go(self, leased: inbox.Leased, *, seconds: float = 3600) -> None:
        """As the driver does when the outcome is not known, until so much later."""
        async with inbox.fenced(self.database, leased) as connection:
            await inbox.postpone(connection, leased, seconds=seconds, error="outcome_pending")

    async def rests_for(self, leased: inbox.Leased) -> float:
        """The seconds until the send is due."""
        async with self.database.transaction() as connection:
            found = await connection.execute(
                text(
                    "SELECT extract(epoch FROM due_at - clock_timestamp())::float8 FROM inbox"
                    " WHERE command_id = :id"
                ),
                {"id": leased.command_id},
            )
            return float(found.scalar_one())

    async def apply_feed(self) -> None:
        """Apply all entries of the bank's feed, as its tail does."""
        record = await feed.prepare(await self.feed.fetch(FeedCursor(0), 500))
        async with self.database.transaction() as connection:
            await record(connection)

    async def found(self, leased: inbox.Leased) -> WireRecord:
        """The wire as it now is."""
        return await self.found_by(leased.command_id)

    async def found_by(self, transaction_id: UUID) -> WireRecord:
        async with self.database.transaction() as connection:
            wire = await wires.find_any(connection, transaction_id)
        assert wire is not None
        return wire

    @asynccontextmanager
    async def locked(self, leased: inbox.Leased) -> AsyncIterator[AsyncConnection]:
        """The wire's row is the test's own during the body."""
        async with self.database.transaction() as connection:
            await wires.lock(connection, [leased.command_id])
            # The body sends nothing by this connection, and may take long on a busy machine.
            await connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = '30s'"))
            yield connection

    async def are_waiting(self, count: int) -> None:
        """Until so many connections wait for a lock."""

        async def waiting() -> bool:
            async with self.database.transaction() as connection:
                found = await connection.execute(
                    text(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                        " AND cardinality(pg_blocking_pids(pid)) > 0"
                    )
                )
                return bool(found.scalar_one() == count)

        await eventually(f"{count} wait for a lock", waiting)

    async def _accept(self, operation: str, principal: Principal, command: Any) -> inbox.Leased:
        command_id = made_id()
        accepting = NewCommand(
            command_id=command_id,
            operation=operation,
            message_id=str(uuid.uuid4()),
            request_id=str(uuid.uuid4()),
            principal=encode(principal),
            tenant=principal.tenant,
            body=encode(command.model_dump()),
            body_hash=None,
            reply_to=None,
            deadline=time.time() + LEASE_SECONDS,
        )
        async with self.database.transaction() as connection:
            leased = await inbox_acceptance.accept(
                connection, accepting, None, lease=True, lease_seconds=LEASE_SECONDS
            )
        assert isinstance(leased, inbox.Leased)
        return leased

    def _drive(self, leased: inbox.Leased, principal: Principal, attempt: int) -> Drive:
        return Drive(
            command_id=leased.command_id,
            operation=leased.operation,
            principal=principal,
            request_id=leased.request_id,
            deadline=leased.deadline,
            attempt=attempt,
            database=self.database,
            group_commit=self.group_commit,
            lease=replace(leased, attempts=attempt),
        )


@asynccontextmanager
async def open_bench(environment: Environment) -> AsyncIterator[Bench]:
    token = environment.secrets.provider_tokens["payments"]["core"]
    core = FakeCore(token, {"acc_1": Account(Decimal("1000000.00"))}, {"ext_1"})
    (port,) = free_ports(1)
    database = open_database(environment.database_urls["payments"], "bench")
    try:
        async with serving(core, port), open_session(8) as session:
            client = ProviderClient("core", f"http://{LOOPBACK}:{port}/core", token, session)
            yield Bench(
                database,
                core,
                SandboxCoreBanking(client, Capabilities(KEY_SECONDS, TRANSIT_SECONDS)),
                CoreFeed(client),
                GroupCommit(database),
            )
            core.heal()
    finally:
        await database.close()
