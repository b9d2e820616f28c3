"""The one table: every operation of every service but the gateway. Router, topology, validation, documents and client
read it.

What the gateway answers itself is in `gateway_table.py`, which no other service needs.
"""

from functools import cache

from libs.contracts import (
    ledger_read_operations,
    onboarding_operations,
    payments_operations,
    reconciliation_operations,
    webhook_operations,
)
from libs.contracts.operating import (
    audit,
    commands,
    customers,
    dead_letters,
    differences,
    feeds,
    overview,
    requests,
    resealing,
    restores,
    saga_steps,
    search,
    webhooks,
    wire_policies,
    wires,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Scope

OPERATIONS: tuple[Operation, ...] = (
    *onboarding_operations.OPERATIONS,
    *ledger_read_operations.OPERATIONS,
    *payments_operations.OPERATIONS,
    *webhook_operations.OPERATIONS,
    *reconciliation_operations.OPERATIONS,
    *wires.OPERATIONS,
    *wire_policies.OPERATIONS,
    *customers.OPERATIONS,
    *saga_steps.OPERATIONS,
    *webhooks.OPERATIONS,
    *differences.OPERATIONS,
    *search.OPERATIONS,
    *audit.OPERATIONS,
    *commands.OPERATIONS,
    *dead_letters.OPERATIONS,
    *feeds.OPERATIONS,
    *overview.OPERATIONS,
    *requests.OPERATIONS,
    *resealing.OPERATIONS,
    *restores.OPERATIONS,
)

PUBLIC_OPERATIONS: tuple[Operation, ...] = tuple(
    row for row in OPERATIONS if row.path is not None and row.family is not Family.OPERATOR
)
"""The rows of partners and customers: what the public listener serves."""

BY_NAME: dict[str, Operation] = {operation.name: operation for operation in OPERATIONS}

SERVICES: tuple[str, ...] = tuple(dict.fromkeys(operation.service for operation in OPERATIONS))
"""The services that take messages, in the table's order."""

FAMILY_SCOPES: dict[Family, frozenset[Scope]] = {
    family: frozenset(row.scope for row in OPERATIONS if row.family is family and row.scope)
    for family in (Family.PARTNER, Family.CUSTOMER)
}
"""What a key of each family may do unless it was made with fewer scopes: the scopes of the family's rows."""


@cache
def operations_of(service: str) -> tuple[Operation, ...]:
    return tuple(operation for operation in OPERATIONS if operation.service == service)


def check(rows: tuple[Operation, ...]) -> None:
    """Raises RuntimeError: the rows contradict each other or themselves."""
    if len({row.name for row in rows}) != len(rows):
        raise RuntimeError("two operations have the same name")
    if any(
        (row.role is not None or row.for_console) != (row.family is Family.OPERATOR) for row in rows
    ):
        raise RuntimeError("rows of operators have a role or are a console's, and only they")
    if any((row.resource is None) != (row not in PUBLIC_OPERATIONS) for row in rows):
        raise RuntimeError("rows of partners and customers have a resource, and only they")
    check_ids(PUBLIC_OPERATIONS)


def check_ids(rows: tuple[Operation, ...]) -> None:
    """Raises RuntimeError: two operations of one document have the same id."""
    if len({row.operation_id for row in rows}) != len(rows):
        raise RuntimeError("two operations of one document have the same id")


check(OPERATIONS)
