"""Whether callers, our rows, the bank and the subscribers agree, once everything has come to its end."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.e2e.wires.hands import WIRES
from tests.faults.campaign.callers import FUNDS, Callers
from tests.faults.campaign.operations import Kind, Operation
from tests.faults.campaign.wishes import Customer, Partner
from tests.support.live import CUSTOMERS
from tests.support.reconciling import assert_reconciled
from tests.support.waiting import eventually

COMPLETED_SECONDS = 90.0
"""For what the faults have held up: the longest pause between two drives, and what the bank needs for a wire."""
DELIVERED_SECONDS = 180.0
"""Deliveries that failed are tried again with growing pauses."""
WIRE_EVENTS = ("wire.created", "wire.submitted", "wire.completed", "transaction.created")
CUSTOMER_EVENTS = ("customer.created", "customer.approved")
"""Each once; a customer may have others."""
PAGE = 100
RECORDS_OF_A_BUSINESS = 2
"""One at each provider."""


@dataclass
class Verdict:
    """What is not as it has to be, with the history of each id; empty lists are what is hoped for."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    undelivered: list[str] = field(default_factory=list)
    delivered: int = 0
    delivered_again: int = 0
    """Events that an endpoint was sent more than once, as subscribers are told may happen."""

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong or self.undelivered)


async def judge(callers: Callers) -> Verdict:
    verdict = Verdict(wrong=list(callers.wrong))
    for partner in callers.partners:
        for customer in partner.customers:
            await _judge_wires(callers, customer, verdict)
        await _judge_updates(callers, partner, verdict)
    await _judge_onboardings(callers, verdict)
    for partner in callers.partners:
        await _judge_events(callers, partner, verdict)
    try:
        await assert_reconciled(callers.fleet.stack, COMPLETED_SECONDS)
    except AssertionError as error:
        verdict.wrong.append(f"reconciliation: {error}")
    return verdict


def _count(verdict: Verdict, operation: Operation, times: int) -> None:
    """`times` is how often the bank has what was asked for."""
    if times > 1:
        verdict.doubled.append(f"{times} times at the bank\n  {operation.history()}")
    elif times == 0 and operation.is_done:
        verdict.lost.append(f"not at the bank\n  {operation.history()}")
    elif times == 1 and not operation.may_have_been_done:
        verdict.wrong.append(f"told that it was not done, and it was\n  {operation.history()}")


async def _judge_wires(callers: Callers, customer: Customer, verdict: Verdict) -> None:
    sent = [
        operation
        for operation in callers.operations
        if operation.kind is Kind.WIRE and operation.owner == customer.customer_id
    ]

    async def all_completed() -> tuple[list[dict[str, Any]]]:
        rows = await callers.bank.wires(customer.account_id)
        states = Counter(row["state"] for row in rows)
        assert set(states) <= {"completed"}, states
        return (rows,)

    (rows,) = await eventually("the bank completed every wire", all_completed, COMPLETED_SECONDS)
    times = Counter(f"{Decimal(row['amount']):.2f}" for row in rows)
    for operation in sent:
        _count(verdict, operation, times.pop(operation.mark, 0))
    verdict.wrong += [f"the bank has a wire of {amount} that no caller sent" for amount in times]

    async def all_told() -> tuple[list[dict[str, Any]]]:
        found = await _all_wires(callers, customer)
        states = Counter(row["state"] for row in found)
        assert set(states) <= {"completed"}, states
        return (found,)

    (told,) = await eventually("we were told of every wire's end", all_told, COMPLETED_SECONDS)
    ours = {row["transaction_id"]: row for row in told}
    theirs = {row["transaction_id"]: row for row in rows}
    for transaction_id in ours.keys() ^ theirs.keys():
        verdict.wrong.append(f"wire {transaction_id} is in one of our books and the bank's only")
    for transaction_id in ours.keys() & theirs.keys():
        one, other = ours[transaction_id], theirs[transaction_id]
        if Decimal(str(one["amount"])) != Decimal(other["amount"]):
            verdict.wrong.append(f"wire {transaction_id}: ours {one}, the bank's {other}")
    for operation in sent:
        if operation.is_done and operation.data["transaction_id"] not in theirs:
            verdict.wrong.append(f"an id that the bank does not know\n  {operation.history()}")
    paid = sum((Decimal(row["amount"]) for row in rows), Decimal(0))
    postings = await callers.bank.ledger(customer.account_id)
    balance = sum((Decimal(row["amount"]) for row in postings), Decimal(0))
    if balance != FUNDS - paid:
        verdict.wrong.append(f"{customer.account_id} holds {balance} rather than {FUNDS - paid}")


async def _all_wires(callers: Callers, customer: Customer) -> list[dict[str, Any]]:
    api = callers.api(customer.key)
    found: list[dict[str, Any]] = []
    for page in range(1, 100_000):
        rows = (await api.get(f"{WIRES}?limit={PAGE}&page={page}")).data
        found += rows
        if len(rows) < PAGE:
            break
    return found


async def _judge_onboardings(callers: Callers, verdict: Verdict) -> None:
    customers = await callers.bank.customers()
    records = Counter(row["fields"].get("ein") for row in customers)
    accounts = Counter(row["customer_id"] for row in await callers.bank.accounts())
    for operation in callers.operations:
        if operation.kind is not Kind.ONBOARDING:
            continue
        found, more = divmod(records[operation.mark], RECORDS_OF_A_BUSINESS)
        if more:
            verdict.wrong.append(f"known to one provider only\n  {operation.history()}")
        _count(verdict, operation, found)
        if operation.is_done:
            business = operation.data["business"]
            if (opened := accounts[business["customer_id"]]) != 1:
                shown = f"{opened} accounts\n  {operation.history()}"
                (verdict.doubled if opened else verdict.lost).append(shown)


async def _judge_updates(callers: Callers, partner: Partner, verdict: Verdict) -> None:
    api = callers.api(partner.key)
    for customer_id in partner.updated:
        target = f"{CUSTOMERS}/business/{customer_id}"
        last = next(o for o in reversed(callers.operations) if o.target == target)
        rows = await callers.bank.customers(customer_id)
        names = [row["fields"]["dba"] for row in rows]
        shown = (await api.get(f"{CUSTOMERS}/{customer_id}")).data["business"]["dba"]
        if {*names, shown} != {last.mark} or len(names) != RECORDS_OF_A_BUSINESS:
            verdict.lost.append(f"the bank has {names}, we {shown}\n  {last.history()}")


async def _told(
    callers: Callers, partner: Partner
) -> tuple[list[dict[str, Any]], dict[str, Counter[str]]]:
    """All events, and how many of each type there are of a wire or a customer."""
    events = await _all_events(callers, partner)
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for event in events:
        data = event["data"]
        told[data.get("transaction_id") or data.get("customer_id") or ""][event["type"]] += 1
    return events, told


async def _judge_events(callers: Callers, partner: Partner, verdict: Verdict) -> None:
    """Of each wire and each customer the events that its way has, each once and delivered."""
    done = [one for one in callers.operations if one.is_done and _is_of(one, partner)]
    wires = {one.data["transaction_id"]: one for one in done if one.kind is Kind.WIRE}
    customers = {
        one.data["business"]["customer_id"]: one for one in done if one.kind is Kind.ONBOARDING
    }
    needed = dict.fromkeys(wires, WIRE_EVENTS) | dict.fromkeys(customers, CUSTOMER_EVENTS)

    async def all_told() -> bool:
        _, told = await _told(callers, partner)
        missing = [one for one, types in needed.items() if not set(types) <= told[one].keys()]
        assert not missing, f"events of {len(missing)} are missing: {missing[:3]}"
        return True

    with contextlib.suppress(AssertionError):  # judged below, one by one
        await eventually("all have their events", all_told, COMPLETED_SECONDS)
    events, told = await _told(callers, partner)
    for transaction_id, operation in wires.items():
        if told[transaction_id] != Counter(WIRE_EVENTS):
            verdict.wrong.append(f"events {dict(told[transaction_id])}\n  {operation.history()}")
    for customer_id, operation in customers.items():
        if any(told[customer_id][needed] != 1 for needed in CUSTOMER_EVENTS):
            verdict.wrong.append(f"events {dict(told[customer_id])}\n  {operation.history()}")

    ids = {event["id"] for event in events}

    async def all_delivered() -> bool:
        missing = ids - partner.endpoint.times.keys()
        assert not missing, f"{len(missing)} of {len(ids)} are not delivered: {sorted(missing)[:3]}"
        return True

    try:
        await eventually("every event is delivered", all_delivered, DELIVERED_SECONDS)
    except AssertionError as error:
        verdict.undelivered.append(str(error))
    verdict.wrong += partner.endpoint.wrong
    verdict.delivered += len(ids)
    verdict.delivered_again += sum(1 for one in ids if partner.endpoint.times[one] > 1)


def _is_of(operation: Operation, partner: Partner) -> bool:
    owners = {partner.tenant, *(customer.customer_id for customer in partner.customers)}
    return operation.owner in owners


async def _all_events(callers: Callers, partner: Partner) -> list[dict[str, Any]]:
    """Of the partner, since it subscribed: what is told before that is not delivered to it."""
    api = callers.api(partner.key)
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        query = f"limit={PAGE}" + (f"&after={after}" if after else "")
        rows = (await api.get(f"/partner/reseller/events?{query}")).data
        found += rows
        if len(rows) < PAGE:
            return found
        after = rows[-1]["id"]
