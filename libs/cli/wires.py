"""`bankside wires …`: wires of all customers, and decisions on wires whose outcome is not known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar
from uuid import UUID

from cyclopts import App, Parameter

from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import first_of, list_of
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.errors import BanksideError, InvalidState, NotFound
from libs.contracts.ids import parse_id
from libs.contracts.model import Command
from libs.contracts.operating import webhooks
from libs.contracts.operating import wires as contract
from libs.contracts.operating.pages import Order
from libs.contracts.operating.search import SEARCH, Kind, Search
from libs.contracts.operating.webhooks import OperatorDelivery
from libs.contracts.operation import Operation
from libs.contracts.wires import WireState

MOST_EVENTS = 20
PAYMENTS = "payments"
ASKED = "Core banking is asked once more."
"""The reason where only that is wanted."""

CommandT = TypeVar("CommandT", bound=Command)

app = App(
    name="wires",
    help="Wires: list, show, approve, decline, cancel, resolve those of unknown outcome.",
)


@app.command(name="list")
def list_wires(
    *,
    state: WireState | None = None,
    unknown: Flag = False,
    tenant: str | None = None,
    customer: str | None = None,
    newest: Flag = False,
    limit: int = 50,
    json: Flag = False,
) -> int:
    """List wires, the oldest first.

    Such as `bankside wires list --unknown`, or `bankside wires list --state pending_approval --customer
    CUSTOMER_ID`.

    Args:
        state: Only those in this state.
        unknown: Only those of which a send has begun and the outcome is not known.
        tenant: Only those of this tenant.
        customer: Only those of this customer.
        newest: The newest first.
        limit: How many to show at most.
        json: Print one JSON document.
    """
    query = contract.ListOperatorWires(
        tenant=tenant,
        customer_id=customer,
        state=state,
        unknown=unknown,
        order=Order.NEWEST if newest else Order.OLDEST,
    )
    found = list_of(contract.LIST_WIRES, query, limit)
    if json:
        print_json({"wires": [wire.model_dump() for wire in found]})
        return 0
    for wire in found:
        _show_line(wire)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(wire_id: str, /, *, json: Flag = False) -> int:
    """Show a wire: its history, the request that asked for it, its send, core banking's view, its events' deliveries.

    Such as `bankside wires show TRANSACTION_ID`; the bank's own id of the wire may stand in its place.

    Args:
        wire_id: The wire's transaction id, or the bank's own id of it.
        json: Print one JSON document.
    """
    transaction_id = _transaction_id_of(wire_id)
    wire = _look_up(transaction_id)
    deliveries = _deliveries(transaction_id)
    if json:
        shown = None if deliveries is None else [each.model_dump() for each in deliveries]
        print_json({**wire.model_dump(), "deliveries": shown})
        return 0
    _show_line(wire)
    out = console()
    out.print(f"  {escape(wire.tenant)}/{escape(wire.customer_id)}")
    out.print(f"  {escape(wire.sending_account_id)} to {escape(wire.external_account_id)}")
    out.print(f"  purpose: {escape(wire.note)}")
    if wire.request is not None:
        key, request_id = wire.request.subscription_key or "?", wire.request.request_id
        out.print(f"  asked for with {escape(key)}, request {escape(request_id)}")
    for step in wire.history:
        said = (step.reason, step.reason_detail, step.by and f"by {step.by}", step.comment)
        rest = "".join(f"  {escape(part)}" for part in said if part)
        out.print(f"  {step.at:%Y-%m-%d %H:%M:%S}Z  {step.state}{rest}")
    if wire.send is not None:
        _show_send(wire.send)
    _show_provider(wire)
    _show_deliveries(deliveries)
    return 0


@app.command
def resolve(
    transaction_id: UUID,
    /,
    *,
    decision: Annotated[Literal["submitted", "rejected"] | None, Parameter(name="--as")] = None,
    reason: str | None = None,
    yes: Flag = False,
    json: Flag = False,
) -> int:
    """Have the provider asked about a wire now; or, with --as, say what became of it.

    A wire that is submitted is brought into the state that it has at the provider: after a restore, what the provider
    reported of it may have come while the database lacked it.

    A decision is for a wire whose outcome is not known, after the bank was asked by other means: it ends the wire's
    send for good, and stays in the wire's history with its reason. It is refused where the bank says otherwise.
    While the last send may still arrive at the bank, a wire is not rejected: sending stops, and the answer says from
    when on to decide again.

    Such as `bankside wires resolve TRANSACTION_ID`, or `bankside wires resolve TRANSACTION_ID --as submitted
    --reason "the bank confirmed it by telephone"`.

    Args:
        transaction_id: The wire.
        decision: What the bank did with it.
        reason: How this is known; needed with --as.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    if (decision is None) != (reason is None):
        raise OperatorError("--as and --reason go together.")
    why = ASKED if reason is None else reason_of(reason)
    refuse_to_ask_in_json(yes=yes, json=json)
    wire = _look_up(transaction_id)
    question = (
        f"Record that the bank has {'taken' if decision == 'submitted' else 'not taken'} it, for good?"
        if decision
        else "Ask the provider about it now?"
    )
    if not yes and not _agreed(wire, question):
        console().print("Nothing was done.")
        return 1
    resolved = _done(
        contract.RESOLVE_WIRE,
        contract.ResolveWire(
            transaction_id=str(transaction_id),
            decision=contract.WireDecision(decision or "ask"),
            reason=why,
        ),
    )
    if json:
        print_json(resolved.model_dump())
        return 0
    _show_line(resolved)
    if resolved.state is WireState.PENDING_SUBMISSION:
        console().print("The provider is being asked; `bankside wires show` tells what it says.")
    return 0


@app.command
def cancel(transaction_id: UUID, /, *, reason: str, yes: Flag = False, json: Flag = False) -> int:
    """Cancel a wire of which certainly nothing was sent.

    Such as `bankside wires cancel TRANSACTION_ID --reason "asked for by the customer"`.

    Args:
        transaction_id: The wire.
        reason: Why; it stands in the wire's history, which its customer sees.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = contract.OperatorCancelWire(
        transaction_id=str(transaction_id), reason=reason_of(reason)
    )
    return _decide(
        contract.CANCEL_WIRE, command, transaction_id, "Cancel it, for good?", yes=yes, json=json
    )


@app.command
def approve(transaction_id: UUID, /, *, reason: str, yes: Flag = False, json: Flag = False) -> int:
    """Approve a wire that waits for approval: it is sent then.

    Such as `bankside wires approve TRANSACTION_ID --reason "invoice seen"`.

    Args:
        transaction_id: The wire.
        reason: Why; it stands in the wire's history, which its customer sees.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = contract.OperatorApproveWire(
        transaction_id=str(transaction_id), reason=reason_of(reason)
    )
    return _decide(
        contract.APPROVE_WIRE, command, transaction_id, "Have it sent?", yes=yes, json=json
    )


@app.command
def decline(transaction_id: UUID, /, *, reason: str, yes: Flag = False, json: Flag = False) -> int:
    """Decline a wire that waits for approval: it is canceled.

    Such as `bankside wires decline TRANSACTION_ID --reason "unknown payee"`.

    Args:
        transaction_id: The wire.
        reason: Why; it stands in the wire's history, which its customer sees.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    command = contract.OperatorDeclineWire(
        transaction_id=str(transaction_id), reason=reason_of(reason)
    )
    return _decide(
        contract.DECLINE_WIRE, command, transaction_id, "Decline it, for good?", yes=yes, json=json
    )


def _decide(
    operation: Operation[CommandT, contract.OperatorWire],
    command: CommandT,
    transaction_id: UUID,
    question: str,
    *,
    yes: bool,
    json: bool,
) -> int:
    refuse_to_ask_in_json(yes=yes, json=json)
    if not yes and not _agreed(_look_up(transaction_id), question):
        console().print("Nothing was done.")
        return 1
    decided = _done(operation, command)
    if json:
        print_json(decided.model_dump())
    else:
        _show_line(decided)
    return 0


def _deliveries(transaction_id: UUID) -> list[OperatorDelivery] | None:
    """Of all events of the wire, the oldest event first; None when the dispatcher does not answer."""
    query = webhooks.ListOperatorEvents(resource_id=str(transaction_id), order=Order.OLDEST)
    try:
        events = first_of(webhooks.LIST_EVENTS, query, MOST_EVENTS)
        return [
            delivery
            for event in events
            for delivery in ask(
                webhooks.GET_EVENT, webhooks.GetOperatorEvent(event_id=event.event_id)
            ).deliveries
        ]
    except (OperatorError, BanksideError):
        return None  # the rest is shown all the same


def _transaction_id_of(wire_id: str) -> UUID:
    """Of the wire that has this id, here or at the bank. A wire that was found by the id of its request, which callers
    choose, comes with its command: it may not be the one that the bank means.
    """
    if (transaction_id := parse_id(wire_id)) is not None:
        return transaction_id
    result = ask(SEARCH, Search(q=wire_id))
    of_a_request = {found.id for found in result.found if found.kind is Kind.COMMAND}
    for found in result.found:
        if found.kind is Kind.WIRE and found.id not in of_a_request:
            return UUID(found.id)
    if PAYMENTS in result.unreachable:
        raise OperatorError("Payments, or the bank that it asks for the id, gives no answer.")
    raise OperatorError(f"There is no wire {wire_id}.")


def _look_up(transaction_id: UUID) -> contract.OperatorWireDetail:
    try:
        return ask(contract.GET_WIRE, contract.GetOperatorWire(transaction_id=str(transaction_id)))
    except NotFound:
        raise OperatorError(f"There is no wire {transaction_id}.") from None


def _done(
    operation: Operation[CommandT, contract.OperatorWire], command: CommandT
) -> contract.OperatorWire:
    try:
        return ask(operation, command)
    except NotFound:
        raise OperatorError("There is no such wire.") from None
    except InvalidState as refusal:
        raise OperatorError(refusal.detail) from None


def _agreed(wire: contract.OperatorWire, question: str) -> bool:
    require_terminal()
    _show_line(wire)
    return agrees(question)


def _show_line(wire: contract.OperatorWire) -> None:
    note = "  [red]outcome unknown[/]" if wire.outcome_unknown else ""
    console().print(
        f"{wire.transaction_id}  {wire.amount:,.2f} USD  [bold]{wire.state}[/]{note}"
        f"  {age(wire.created_at, datetime.now(UTC))} old"
    )


def _show_send(send: contract.WireSend) -> None:
    following = (
        f"[red]parked[/]: {escape(send.parked_because)}"
        if send.parked_because
        else f"next at {send.next_attempt_at:%Y-%m-%d %H:%M:%S}Z"
    )
    console().print(
        f"  its send: attempts {send.attempts}, last error {send.last_error or 'none'}, {following}"
    )


def _show_provider(wire: contract.OperatorWireDetail) -> None:
    out, provider = console(), wire.provider
    if provider is None:
        out.print(f"  core banking gave no answer: {wire.provider_error}")
    elif not provider.found:
        out.print("  core banking knows no such wire")
    else:
        amount = f", {provider.amount:,.2f} USD" if provider.amount is not None else ""
        reason = f", {escape(provider.reason)}" if provider.reason else ""
        out.print(
            f"  at core banking {escape(provider.id or '?')}: {escape(provider.status or '?')}{amount}{reason}"
        )


def _show_deliveries(deliveries: list[OperatorDelivery] | None) -> None:
    out = console()
    if deliveries is None:
        out.print(
            "  the deliveries of its events are not known: webhook_dispatcher does not answer"
        )
        return
    for each in deliveries:
        out.print(
            f"  {each.event_type} to {each.subscription_id}: {each.status}, attempts {each.attempts_made}"
        )
