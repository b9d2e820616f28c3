"""Where the identity provider's verdict takes a customer."""

from __future__ import annotations

import structlog
from prometheus_client import Counter

from libs.contracts.customers import CustomerStatus
from libs.persistence.async_engine import AsyncConnection
from services.onboarding import states
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerFile, ProviderIssue

TRANSITIONS_REFUSED = Counter(
    "bankside_onboarding_transitions_refused",
    "Verdicts whose effect on the customer the state machine does not allow",
    ("current", "following"),
)
_log = structlog.get_logger("verdicts")


def issues_of(file: CustomerFile) -> list[tuple[ProviderIssue, ...]]:
    """What the identity provider finds with the business and with each person."""
    return [() if record is None else record.issues for record in file.verifications]


async def follow_verdict(
    connection: AsyncConnection, parts: Parts, file: CustomerFile
) -> CustomerFile:
    """Move the customer, whose row is locked, to where its verifications together take it; the file afterwards.

    To be called when one of them has changed. A verdict that the state machine does not allow is logged and counted,
    and the customer stays.
    """
    customer, verdict = file.customer, file.verdict
    if verdict in (customer.status, CustomerStatus.PENDING):
        return file
    way = states.way(customer.status, verdict)
    if not way:
        TRANSITIONS_REFUSED.labels(customer.status.value, verdict.value).inc()
        _log.error(
            "transition_refused",
            customer=str(customer.customer_id),
            current=customer.status.value,
            following=verdict.value,
        )
    for status in way:
        await parts.move(connection, file, status)
        file = await parts.locked_file(connection, customer.tenant, customer.customer_id)
    return file
