"""The one table: every operation of every service. Router, topology, validation, documents and client read it."""

from libs.contracts import (
    ledger_read_operations,
    onboarding_operations,
    payments_operations,
    reconciliation_operations,
    webhook_operations,
)
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Scope

OPERATIONS: tuple[Operation, ...] = (
    *onboarding_operations.OPERATIONS,
    *ledger_read_operations.OPERATIONS,
    *payments_operations.OPERATIONS,
    *webhook_operations.OPERATIONS,
    *reconciliation_operations.OPERATIONS,
)

BY_NAME: dict[str, Operation] = {operation.name: operation for operation in OPERATIONS}

SERVICES: tuple[str, ...] = tuple(dict.fromkeys(operation.service for operation in OPERATIONS))
"""The services that have operations, in the table's order."""

FAMILY_SCOPES: dict[Family, frozenset[Scope]] = {
    family: frozenset(row.scope for row in OPERATIONS if row.family is family and row.scope)
    for family in Family
}
"""What a key of each family may do unless it was made with fewer scopes: the scopes of the family's rows."""


def operations_of(service: str) -> tuple[Operation, ...]:
    return tuple(operation for operation in OPERATIONS if operation.service == service)


if len(BY_NAME) != len(OPERATIONS):
    raise RuntimeError("two operations have the same name")
