"""`bankside wires …`: wires of all customers, and decisions on wires whose outcome is not known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from cyclopts import App, Parameter
from rich.markup import escape
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cli.audit import operator_name
from libs.cli.database import with_database
from libs.cli.decisions import (
    Flag,
    agrees,
    reason_of,
    refuse_to_ask_in_json,
    require_terminal,
)
from libs.cli.output import age, console, print_json
from libs.client.errors import OperatorError
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.principal import Family, Principal
from libs.contracts.wires import WireState
from libs.persistence import parking
from libs.persistence.engine import Database
from libs.persistence.parking import OpenCommand
from services.payments.models import WireRecord
from services.payments.reasons import LONGEST_REASON
from services.payments.repository import lists, wires
from services.payments.resolving import resolve_wire

SERVICE = "payments"
MAX_SHOWN = 1000
ASKED = "Core banking is asked once more."
"""The reason where only that is wanted."""


app = App(name="wires", help="Wires: list, show, resolve those whose outcome is not known.")


@app.command(name="list")
def list_wires(
    *, state: WireState | None = None, unknown: Flag = False, limit: int = 50, json: Flag = False
) -> int:
    """List wires, the oldest first.

    Args:
        state: Only those in this state.
        unknown: Only those of which a send has begun and the outcome is not known.
        limit: Show at most so many.
        json: Print one JSON document.
    """
    if not 1 <= limit <= MAX_SHOWN:
        raise OperatorError(f"--limit is 1 to {MAX_SHOWN}.")

    async def look(database: Database) -> list[WireRecord]:
        async with database.transaction() as connection:
            return await lists.oldest(connection, state, unknown=unknown, limit=limit)

    found = with_database(SERVICE, look)
    if json:
        print_json({"wires": [_document(wire) for wire in found]})
        return 0
    for wire in found:
        _show_line(wire)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(transaction_id: UUID, /, *, json: Flag = False) -> int:
    """Show a wire with its history, and how its send stands.

    Args:
        transaction_id: The wire.
        json: Print one JSON document.
    """
    wire, send = _look_up(transaction_id)
    if json:
        print_json(_document(wire) | {"send": _send_document(send)})
        return 0
    _show_line(wire)
    out = console()
    out.print(f"  {escape(wire.tenant)}/{escape(wire.customer_id)}")
    out.print(f"  {escape(wire.sending_account_id)} to {escape(wire.external_account_id)}")
    for step in wire.history:
        reason = f"  {escape(step.reason)}" if step.reason else ""
        out.print(f"  {step.at:%Y-%m-%d %H:%M:%S}Z  {step.state}{reason}")
    if send is not None:
        following = (
            f"[red]parked[/]: {escape(send.parked_because)}"
            if send.parked_because
            else f"next at {send.next_attempt_at:%Y-%m-%d %H:%M:%S}Z"
        )
        out.print(
            f"  its send: attempts {send.attempts}, last error {send.last_error or 'none'}, {following}"
        )
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

    A decision is for a wire whose outcome is not known, after the bank was asked by other means: it ends the wire's
    send for good, and stays in the wire's history with its reason.

    Args:
        transaction_id: The wire.
        decision: What the bank did with it.
        reason: How this is known; needed with --as.
        yes: Do not ask.
        json: Print one JSON document; needs --yes.
    """
    if (decision is None) != (reason is None):
        raise OperatorError("--as and --reason go together.")
    if reason is not None:
        reason = reason_of(reason, longest=LONGEST_REASON)
    refuse_to_ask_in_json(yes=yes, json=json)
    wire, _ = _look_up(transaction_id)
    if not yes and not _agreed(wire, decision):
        console().print("Nothing was done.")
        return 1

    async def work(database: Database) -> WireRecord:
        state = WireState(decision) if decision else None
        return await resolve_wire(
            database, _operator(), transaction_id, state, reason=reason or ASKED
        )

    try:
        resolved = with_database(SERVICE, work)
    except NotFound:
        raise OperatorError(f"There is no wire {transaction_id}.") from None
    except InvalidState as error:
        raise OperatorError(error.detail) from None
    if json:
        print_json(_document(resolved))
        return 0
    _show_line(resolved)
    if decision is None:
        console().print("The provider is being asked; `bankside wires show` tells what it says.")
    return 0


async def why_not_abandoned(
    connection: AsyncConnection, operation: str, command_id: UUID
) -> str | None:
    """See `libs.cli.commands.WhyNotAbandoned`: a pending wire would stay so, since no command would find it out."""
    if operation != SEND_WIRE.name:
        return None
    wire = (await wires.lock(connection, [command_id])).get(command_id)
    if wire is None or not wire.is_pending:
        return None
    if wire.is_unknown:
        return (
            "It is not known whether the bank has the wire: find out, and say so with"
            f" `bankside wires resolve {command_id} --as submitted|rejected --reason TEXT`."
        )
    return "Its wire is pending and was not sent: retry it, or have its customer cancel the wire."


def _operator() -> Principal:
    """The user of this terminal."""
    return Principal(
        tenant="",
        tenant_name="",
        family=Family.OPERATOR,
        subscription_key="",
        operator=operator_name(),
    )


def _look_up(transaction_id: UUID) -> tuple[WireRecord, OpenCommand | None]:
    async def look(database: Database) -> tuple[WireRecord | None, OpenCommand | None]:
        async with database.transaction() as connection:
            send = await parking.find(connection, transaction_id)
            found = await wires.find_any(connection, transaction_id)
            return found, send

    wire, send = with_database(SERVICE, look)
    if wire is None:
        raise OperatorError(f"There is no wire {transaction_id}.")
    return wire, send


def _agreed(wire: WireRecord, decision: str | None) -> bool:
    require_terminal()
    _show_line(wire)
    question = (
        f"Record that the bank has {'taken' if decision == 'submitted' else 'not taken'} it, for good?"
        if decision
        else "Ask the provider about it now?"
    )
    return agrees(question)


def _show_line(wire: WireRecord) -> None:
    note = "  [red]outcome unknown[/]" if wire.is_unknown else ""
    console().print(
        f"{wire.transaction_id}  {wire.amount:,.2f} USD  [bold]{wire.state}[/]{note}"
        f"  {age(wire.created_at, datetime.now(UTC))} old"
    )


def _document(wire: WireRecord) -> dict[str, Any]:
    return {
        "transaction_id": str(wire.transaction_id),
        "tenant": wire.tenant,
        "customer_id": wire.customer_id,
        "sending_account_id": wire.sending_account_id,
        "external_account_id": wire.external_account_id,
        "amount": wire.amount,
        "note": wire.purpose,
        "state": wire.state,
        "reason": wire.reason,
        "outcome_unknown": wire.is_unknown,
        "history": [
            {"state": step.state, "at": step.at, "reason": step.reason} for step in wire.history
        ],
        "created_at": wire.created_at,
    }


def _send_document(send: OpenCommand | None) -> dict[str, Any] | None:
    if send is None:
        return None
    return {
        "attempts": send.attempts,
        "last_error": send.last_error,
        "next_attempt_at": None if send.parked_because else send.next_attempt_at,
        "is_driven": send.is_driven,
        "parked_because": send.parked_because,
    }
