"""What providers report later: decisions on identities become commands, reports of accounts update their status."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid5

import msgspec

from libs.contracts.ids import parse_id
from libs.handling.feed_tail import Record
from libs.persistence import inbox_acceptance
from libs.persistence.async_engine import AsyncConnection
from services.onboarding.handlers.apply_decision import decision
from services.onboarding.models import (
    RESERVE,
    AccountEntry,
    AccountReport,
    IdentityEntry,
    IdentityReport,
)
from services.onboarding.repository import accounts, verifications
from services.onboarding.repository.customers import pending_among, tenants_of

IDENTITY_FEED = "identity"
FINANCIAL_FEED = "financial"
DECISIONS = UUID("6f0c2f5e-3d0b-5b53-9d0c-0e6a4f8f2a11")
"""Namespace of the command ids of decisions: one entry, one command, however often it is read."""


async def prepare_identity(entries: Sequence[IdentityEntry]) -> Record:
    """Each entry about a customer of ours, and not known yet, becomes a command of that customer's.

    The entry may be read before we have committed the id of its record; the customer's own id was committed before the
    provider was called. So the command is recorded by the customer, and finds the record when its turn comes. One about
    a customer that is pending has no turn: the customer's other commands wait for the onboarding, which waits for it.
    """

    async def record(connection: AsyncConnection) -> None:
        ours = [
            (entry, entry.report, parse_id(entry.report.business_id))
            for entry in entries
            if entry.report is not None
        ]
        tenants = await tenants_of(connection, {c for *_, c in ours if c is not None})
        pending = await pending_among(connection, tenants)
        known = await verifications.known_versions(
            connection, [report.identity_id for _, report, _ in ours]
        )
        for entry, report, customer_id in ours:
            is_news = report.status is None or known.get(report.identity_id, 0) < report.version
            if customer_id in tenants and is_news:
                command_id = uuid5(DECISIONS, f"{IDENTITY_FEED}/{entry.event_id or entry.position}")
                command = decision(
                    command_id,
                    tenants[customer_id],
                    customer_id,
                    _verification_in(report),
                    subscription_key=f"feed:{IDENTITY_FEED}",
                    is_ordered=customer_id not in pending,
                )
                await inbox_acceptance.enqueue(connection, command)

    return record


def _verification_in(report: IdentityReport) -> dict[str, object] | None:
    if report.status is None:
        return None
    return {
        "identity_id": report.identity_id,
        "status": report.status,
        "version": report.version,
        "issues": msgspec.to_builtins(report.issues),
    }


def _account_id(report: AccountReport) -> str:
    return report.account_id


async def prepare_financial(entries: Sequence[AccountEntry]) -> Record:
    """The status of each account, known to be ours or not yet, and whose a reserve account is.

    A customer's deposit account is opened by us, a reserve account by the bank, which reports it by its feed only.
    Reports are applied in the order in which the commit of openings takes its locks, so that the two do not deadlock:
    first customers, which an owner refers to, then accounts in the order of their ids. Reports of one account keep the
    order of the feed. A deadlock is left where one commit opens two customers whose reserve accounts are in one batch
    of the feed: the server ends one of the two transactions, and it is repeated.
    """

    async def record(connection: AsyncConnection) -> None:
        reports = [entry.report for entry in entries if entry.report is not None]
        tenants = await tenants_of(
            connection, {c for report in reports if (c := parse_id(report.customer_id)) is not None}
        )
        reports.sort(key=_account_id)
        for report in reports:
            customer_id, number = parse_id(report.customer_id), report.account_number
            is_reserve = report.account_group == RESERVE
            if is_reserve and customer_id in tenants and number is not None:
                await accounts.own(
                    connection,
                    tenants[customer_id],
                    customer_id,
                    report.account_id,
                    number,
                    RESERVE,
                )
        for report in reports:
            if report.status is not None:
                await accounts.set_status(connection, report.account_id, report.status)

    return record
