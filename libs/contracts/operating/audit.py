"""The audit of each service: the models, and the rows of services and of the gateway.

A chain is one service's, so a page is of one service. Its rows have the hashes of the chain: a caller that reads all of
them in their order computes the chain by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from http import HTTPMethod
from typing import Any, Literal, get_args

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Model
from libs.contracts.operating.pages import Listed, ListPage
from libs.contracts.operating.services import for_each_service, of_gateway, of_services
from libs.contracts.operation import Operation
from libs.contracts.periods import broken_period
from libs.contracts.principal import Role

Service = Literal[
    "gateway", "onboarding", "ledger_read", "payments", "webhook_dispatcher", "reconciliation"
]
SERVICES: tuple[Service, ...] = get_args(Service)


class ListAudit(ListPage):
    """Rows in the order of the chain. A filter looks at the next 20,000 rows: a page may have few rows, or none, and a
    `next`.

    Args:
        since: from this day on (UTC).
        until: up to this day.
        actor: a subscription key, or `operator:<name>`.
        action: as recorded, such as `payments.send_wire` or `keys.revoke`.
        text: stands somewhere in the entry or in one of its values, in upper or lower case.
    """

    since: f.CalendarDate | None = None
    until: f.CalendarDate | None = None
    actor: f.Text | None = None
    action: f.Text | None = None
    text: f.Text | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return [*super().broken_rules(values), *broken_period(values, "since", "until")]


class ListAuditOf(ListAudit):
    """Rows in the order of the chain. A filter looks at the next 20,000 rows: a page may have few rows, or none, and a
    `next`.
    """

    service: Service
    """Whose audit is read."""


class AuditRow(Model):
    """A row of the chain.

    Args:
        entry: the JSON text over which the hash was made.
        previous: the hash of the row before it, in hexadecimal.
        hash: SHA-256 of `previous` (its bytes), then of the text `day:number:entry`.
    """

    day: date
    """The day of the row (UTC)."""
    number: int
    """The row's number in its day, from 1 on."""
    entry: str
    previous: str
    hash: str


LIST_OF = for_each_service(
    SERVICES,
    "list_audit",
    command=ListAudit,
    reply=Listed[AuditRow],
    summary="What was done, by whom",
)
OPERATIONS = of_services(LIST_OF)

LIST_AUDIT = Operation(
    name="gateway.list_audit",
    method=HTTPMethod.GET,
    path="/operator/audit",
    role=Role.VIEWER,
    command=ListAuditOf,
    reply=Listed[AuditRow],
    message="Audit found",
    errors=(e.NotFound, e.Unavailable),
    summary="List what was done, by whom, in a service's audit, with the hashes of its chain",
    extension=True,
)
GATEWAY_OPERATIONS = (LIST_AUDIT, *of_gateway(LIST_OF))
