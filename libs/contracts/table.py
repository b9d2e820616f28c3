"""The one table: every operation of every service. Router, topology, validation, documents and client read it."""

from libs.contracts import (
    ledger_read_operations,
    onboarding_operations,
    payments_operations,
    reconciliation_operations,
    webhook_operations,
)
from libs.contracts.operation import Operation

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


def operations_of(service: str) -> tuple[Operation, ...]:
    return tuple(operation for operation in OPERATIONS if operation.service == service)


if len(BY_NAME) != len(OPERATIONS):
    raise RuntimeError("two operations have the same name")
