"""Differences between our books and the providers', and the runs that find them, as operators see them."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPMethod
from typing import Annotated, Any, Literal

from pydantic import Field

from libs.contracts import errors as e
from libs.contracts import fields as f
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import Operation, declared_in
from libs.contracts.principal import Role


class DifferenceState(StrEnum):
    """`explained`: closed by an operator. `disappeared`: closed by a run that no longer found it."""

    OPEN = "open"
    EXPLAINED = "explained"
    DISAPPEARED = "disappeared"


DifferenceKind = Literal[
    "wire_unknown_to_us",
    "wire_missing_at_provider",
    "wire_state",
    "wire_amount",
    "wire_accounts",
    "wire_debit",
    "wire_return",
    "wire_told",
    "news_of_unknown_wire",
    "news_of_illegal_transition",
    "provider_contradicts_record",
    "identity_customer_unknown_to_us",
    "identity_customer_missing",
    "identity_customer_owner",
    "identity_fields",
    "identity_status",
    "core_customer_unknown_to_us",
    "core_customer_missing",
    "core_customer_owner",
    "core_fields",
    "core_status",
    "account_unknown_to_us",
    "account_missing_at_provider",
    "account_owner",
    "account_number",
    "account_status",
    "account_of_denied_customer",
    "external_account_unknown_to_us",
    "external_account_missing_at_provider",
    "external_account_closed_at_provider",
    "external_account_owner",
    "external_account_number",
    "external_account_primary",
    "balance",
    "balance_missing",
    "postings_went_back",
    "feed_went_back",
    "feed_stands_still",
    "deposit_locations",
    "told_account",
    "told_external_account",
    "told_customer",
]
"""The kinds of this release; the README of reconciliation says what each means."""


class ListOperatorDifferences(ListPage):
    """By `first_seen`.

    Args:
        state: all states when it is left out.
        tenant: only what is known to be of this tenant. Of an account that only a provider has, no tenant is known.
    """

    kind: f.FilterId | None = None
    """Only differences of this kind."""
    state: Annotated[DifferenceState, Field(strict=False)] | None = None
    tenant: f.FilterId | None = None


class GetOperatorDifference(Command):
    """A difference with what both sides hold."""

    difference_id: str


class ExplainDifference(Write):
    """`reason`: why both sides may differ.

    Args:
        revision: that of the difference as it was read. One that has another by now is not closed. Without it the
            difference is closed as it stands.
    """

    difference_id: str
    revision: Annotated[int, Field(ge=1, lt=2**31)] | None = None


class RevealDifference(Write):
    """The account numbers of both sides."""

    difference_id: str


class RevealedDifference(Model):
    """The account number that each side has; null where it has none. It is one of ours, as `Account` has it."""

    ours: str | None
    """The number that we hold."""
    theirs: str | None
    """The number that the provider holds."""


class OperatorDifference(Model):
    """A difference with both sides.

    Args:
        subject: the id of the record that differs.
        ids: of the record and of what it belongs to.
        ours: what we hold, nothing sensitive among it, and of an account number the last four digits or less; null when
            we hold nothing.
        theirs: what the provider holds, likewise.
        closed_by: the operator who explained it.
    """

    difference_id: f.UuidText
    """The difference's id."""
    comparison: str
    """Which books were compared."""
    kind: str
    """What is different, in a word, such as `wire_missing_at_provider`."""
    subject: str
    ids: dict[str, str]
    ours: dict[str, Any] | None
    theirs: dict[str, Any] | None
    first_seen: f.UtcDateTime
    """When a run saw it first."""
    last_seen: f.UtcDateTime
    """When a run saw it last."""
    closed_at: f.UtcDateTime | None
    """When it was closed; null while it is open."""
    closed_as: Literal["explained", "disappeared"] | None
    """How it was closed; null while it is open."""
    reason: str | None
    """The reason of the operator who explained it."""
    closed_by: str | None
    revision: int = 1
    """1 at first, and one more each time that a run found the difference otherwise while it was open."""


class StartReconciliation(Write):
    """Begin a comparison of all books. One that waits already is not asked for twice.

    Args:
        read_postings_again: read postings and deposit loads from the first one on, after the provider was restored.
    """

    read_postings_again: bool = False


class ListReconciliationRuns(ListPage):
    """By `requested_at`."""


class GetReconciliationRun(Command):
    """A comparison, also while it is under way."""

    run_id: str
    """The run's id."""


class ReconciliationRun(Model):
    """A comparison of all books.

    Args:
        state: `gave_up`: it took too long; the next run looks at what it had left.
        looked_at: records on either side.
        in_flight: records that could not be compared, since a command or a posting was going to change them.
        differing: differences that were open when it ended.
    """

    run_id: f.UuidText
    """The run's id."""
    cause: str
    """Why it was made: `schedule`, `operator`, or in a service's words."""
    state: Literal["requested", "under_way", "complete", "gave_up"]
    requested_at: f.UtcDateTime
    """When it was asked for."""
    started_at: f.UtcDateTime | None
    """When it began; null until then."""
    finished_at: f.UtcDateTime | None
    """When it ended; null until then."""
    looked_at: int
    suspected: int
    """Records that seemed to differ, and were looked at again."""
    in_flight: int
    differing: int


LIST_DIFFERENCES = Operation(
    name="reconciliation.operator_list_differences",
    method=HTTPMethod.GET,
    path="/operator/differences",
    role=Role.VIEWER,
    command=ListOperatorDifferences,
    reply=Listed[OperatorDifference],
    message="Differences found",
    summary="List what differs between our books and the providers'",
)
GET_DIFFERENCE = Operation(
    name="reconciliation.operator_get_difference",
    method=HTTPMethod.GET,
    path="/operator/differences/{difference_id}",
    role=Role.VIEWER,
    command=GetOperatorDifference,
    reply=OperatorDifference,
    message="Difference found",
    errors=(e.NotFound,),
    summary="Get a difference with both sides",
)
EXPLAIN_DIFFERENCE = Operation(
    name="reconciliation.operator_explain_difference",
    method=HTTPMethod.POST,
    path="/operator/differences/{difference_id}/explain",
    role=Role.OPERATOR,
    command=ExplainDifference,
    reply=OperatorDifference,
    message="Difference explained",
    errors=(e.NotFound, e.InvalidState),
    summary="Close an open difference; it is opened again when a run finds it otherwise",
)
REVEAL_DIFFERENCE = Operation(
    name="reconciliation.operator_reveal_difference",
    method=HTTPMethod.POST,
    path="/operator/differences/{difference_id}/reveal",
    role=Role.ADMIN,
    command=RevealDifference,
    reply=RevealedDifference,
    message="Numbers revealed",
    errors=(e.NotFound,),
    summary="Show the account numbers of a difference, which is audited",
)
START_RECONCILIATION = Operation(
    name="reconciliation.operator_start_run",
    method=HTTPMethod.POST,
    path="/operator/reconcile",
    role=Role.OPERATOR,
    command=StartReconciliation,
    reply=ReconciliationRun,
    message="Run requested",
    summary="Compare all books once more from fresh data",
)
LIST_RUNS = Operation(
    name="reconciliation.operator_list_runs",
    method=HTTPMethod.GET,
    path="/operator/reconcile/runs",
    role=Role.VIEWER,
    command=ListReconciliationRuns,
    reply=Listed[ReconciliationRun],
    message="Runs found",
    summary="List the runs",
)
GET_RUN = Operation(
    name="reconciliation.operator_get_run",
    method=HTTPMethod.GET,
    path="/operator/reconcile/runs/{run_id}",
    role=Role.VIEWER,
    command=GetReconciliationRun,
    reply=ReconciliationRun,
    message="Run found",
    errors=(e.NotFound,),
    summary="Get a run",
)

OPERATIONS = declared_in(globals(), Operation)
