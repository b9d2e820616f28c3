"""Wires."""

from typing import Any

from libs.contracts.operating import wires as o
from libs.contracts.wires import WireState
from services.console.declarations import Action, Beside, DetailPage, ListPage, Panel, Subject
from services.console.pages import webhooks

LIST = ListPage(
    path="/wires",
    title="Wires",
    about="Wires of all tenants. One is unknown when it was sent and the bank has not said what became of it."
    " `Start date` and `End date` are days at the bank, in New York; the times of wires are UTC.",
    operation=o.LIST_WIRES,
    columns=(
        "transaction_id",
        "state",
        "outcome_unknown",
        "amount",
        "tenant",
        "customer_id",
        "note",
        "created_at",
        "updated_at",
    ),
    one="/wires/{transaction_id}",
)


def _may_be_resolved(wire: Any) -> bool:
    """Of unknown outcome, or behind the state that the bank shows: what it reported was missed."""
    shown = wire.provider.state if wire.provider else None
    is_behind = (
        wire.state is WireState.SUBMITTED and shown not in (None, WireState.SUBMITTED)
    ) or (wire.state is WireState.COMPLETED and shown is WireState.RETURNED)
    return is_behind or bool(wire.outcome_unknown)


def _may_be_unsent(wire: Any) -> bool:
    return wire.state is WireState.PENDING_SUBMISSION and not wire.outcome_unknown


def _waits_for_approval(wire: Any) -> bool:
    return wire.state is WireState.PENDING_APPROVAL


def _asked(command: o.ResolveWire) -> str:
    """The answer may come later, or stand in the wire's history already."""
    return (
        "The bank is asked: the state below is what is known."
        if command.decision is o.WireDecision.ASK
        else ""
    )


APPROVE = Action(
    title="Approve",
    path="/wires/{transaction_id}/approve",
    operation=o.APPROVE_WIRE,
    effect="Approves the wire in the customer's place: its limits are looked at again, then it is sent. The reason"
    " stands in the wire's history, which its customer sees.",
    done="The wire is approved.",
    when=_waits_for_approval,
    needs_item=True,
)
DECLINE = Action(
    title="Decline",
    path="/wires/{transaction_id}/decline",
    operation=o.DECLINE_WIRE,
    effect="Cancels the wire; nothing is sent. The reason stands in the wire's history, which its customer sees.",
    done="The wire is declined.",
    when=_waits_for_approval,
    danger=True,
)
RESOLVE = Action(
    title="Resolve",
    path="/wires/{transaction_id}/resolve",
    operation=o.RESOLVE_WIRE,
    effect="Says what the bank did with this wire, for good: `submitted` and `rejected` stand in its history, which its"
    " customer sees, and the customer is told by events. `ask` asks the bank again; a wire that is submitted is brought"
    " into the state that it has there. Look at the bank's own side first: a decision that the bank's answer"
    " contradicts is refused. After a refusal of `rejected`, do not choose `ask` before you have decided: it ends the"
    " hold of the wire, and payments may send it again.",
    done="The wire is resolved.",
    done_by=_asked,
    when=_may_be_resolved,
    danger=True,
)
CANCEL = Action(
    title="Cancel",
    path="/wires/{transaction_id}/cancel",
    operation=o.CANCEL_WIRE,
    effect="Cancels the wire before it is sent. It is refused once a send has begun. The reason stands in the wire's"
    " history, which its customer sees.",
    done="The wire is canceled.",
    when=_may_be_unsent,
    danger=True,
)

DETAIL = DetailPage(
    path="/wires/{transaction_id}",
    title="Wire",
    operation=o.GET_WIRE,
    name="transaction_id",
    parent=LIST,
    parts=("history", "send", "request"),
    timeline=("history",),
    beside=(
        Beside("State", "state", "provider.state"),
        Beside("Amount", "amount", "provider.amount"),
        Beside("From account", "sending_account_id", "provider.account_id"),
        Beside("Reason", "reason_detail", "provider.reason", otherwise="reason"),
    ),
    sides=("Here", "At the bank"),
    actions=(APPROVE, DECLINE, RESOLVE, CANCEL),
    panels=(Panel(webhooks.EVENTS, "Events", {"resource_id": "transaction_id"}),),
)

SUBJECT = Subject(LIST, (DETAIL,))
