"""Wire transfers: from their creation to Fedwire, and back."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Literal

from increase import types as sdk

from tests.support.increase_bank.accounts import active_external, is_routing_number, open_account
from tests.support.increase_bank.calls import Call, Conduct, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation, InvalidParameters
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.postings import hold, post, release
from tests.support.increase_bank.shapes import Json, timestamp
from tests.support.increase_bank.store import Store

KIND = "wire_transfer"
CYCLE_DATE_SHOWN = "-4712-01-01"
"""`input_cycle_date` of reversals at Increase's sandbox, recorded there. The SDK's type does not know it as a date."""
Outcome = Literal["complete", "rejected", "requires_attention", "reversed"]
OUTCOMES: dict[int, Outcome] = {66: "rejected", 67: "requires_attention", 68: "reversed"}
"""By the cents of the amount; all other wires are completed."""
BEFORE_SUBMISSION = ("pending_approval", "pending_creating", "pending_reviewing")
UNDECIDED = (*BEFORE_SUBMISSION, "requires_attention")
SUBMITTED_AFTER = 0.5
"""The part of the time to completion after which a wire is submitted."""


def create(call: Call) -> Done:
    body = call.body
    account = open_account(call.store, body["account_id"])
    entity = call.store.get("entity", account["entity_id"])
    if entity["status"] != "active":
        raise InvalidOperation(f"The account's entity is {entity['status']}.")
    remittance = body["remittance"]
    if remittance["category"] not in remittance:
        raise InvalidParameters.of(f"remittance.{remittance['category']}", "is required")
    number, routing_number = destination(call)
    wire: Json = {
        "id": new_id(KIND),
        "type": KIND,
        "account_id": account["id"],
        "account_number": number,
        "amount": body["amount"],
        "created_by": {"category": "api_key", "api_key": {"description": None}},
        "creditor": _party(body["creditor"]),
        "currency": "USD",
        "debtor": _party(body["debtor"]) if "debtor" in body else None,
        "external_account_id": body.get("external_account_id"),
        "idempotency_key": call.key,
        "inbound_wire_drawdown_request_id": body.get("inbound_wire_drawdown_request_id"),
        "network": "wire",
        "remittance": dict(remittance),
        "routing_number": routing_number,
        "source_account_number_id": body.get("source_account_number_id"),
        "status": "pending_approval" if body.get("require_approval") else "pending_creating",
        "unique_end_to_end_transaction_reference": str(uuid.uuid4()),
    }
    wire["pending_transaction_id"] = hold(
        call.store,
        account["id"],
        body["amount"],
        "wire_transfer_instruction",
        _instruction(wire),
        _message(wire),
    )
    call.store.put(wire)
    if wire["status"] == "pending_creating":
        call.store.due(wire["id"], call.conduct.wire_seconds * SUBMITTED_AFTER)
    return Done(KIND, wire["id"])


def destination(call: Call) -> tuple[str, str]:
    """The account and routing numbers to which a transfer goes. Raises InvalidParameters, InvalidOperation."""
    body = call.body
    given = "account_number" in body, "routing_number" in body
    if "external_account_id" in body:
        if any(given):
            raise InvalidParameters.of(
                "external_account_id", "excludes account_number and routing_number"
            )
        external = active_external(call.store, body["external_account_id"])
        return external["account_number"], external["routing_number"]
    if not all(given):
        raise InvalidParameters.of(
            "external_account_id", "or account_number and routing_number are required"
        )
    if not is_routing_number(body["routing_number"]):
        raise InvalidParameters.of("routing_number", "is not a routing number")
    return body["account_number"], body["routing_number"]


def _party(submitted: Json) -> Json:
    """A creditor or debtor as it is answered: with the lines of its address, however they were sent."""
    address = submitted.get("address", {}).get("structured")
    if address is None:
        return {"name": submitted["name"], "address": None}
    region = " ".join(address[name] for name in ("state", "postal_code") if name in address)
    parts = [address.get("line1"), address.get("line2"), ", ".join([address["city"], region])]
    lines = [part for part in parts if part]
    unstructured = {f"line{number}": line for number, line in enumerate(lines, 1)}
    return {"name": submitted["name"], "address": {"unstructured": unstructured}}


def _message(wire: Json) -> str:
    unstructured = wire["remittance"].get("unstructured") or {}
    return str(unstructured.get("message", "Tax payment"))


def _instruction(wire: Json) -> Json:
    return {
        "account_number": wire["account_number"],
        "amount": wire["amount"],
        "message_to_recipient": _message(wire),
        "routing_number": wire["routing_number"],
        "transfer_id": wire["id"],
    }


def advance(store: Store, conduct: Conduct, wire_id: str) -> None:
    """The next step of a wire that moves on by itself."""
    wire = store.get(KIND, wire_id)
    outcome = OUTCOMES.get(wire["amount"] % 100, "complete")
    if wire["status"] == "pending_creating":
        if outcome in ("rejected", "requires_attention"):
            move(store, wire, outcome)
        else:
            move(store, wire, "submitted")
            store.due(wire_id, conduct.wire_seconds * (1 - SUBMITTED_AFTER))
    elif wire["status"] == "submitted":
        move(store, wire, "complete")
        if outcome == "reversed":
            store.due(wire_id, conduct.wire_seconds)
    elif wire["status"] == "complete" and outcome == "reversed":
        reverse(store, wire)


def move(store: Store, wire: Json, status: str, came_back: int | None = None) -> None:
    """Bring a wire to a status that may follow on its own, with what it does to the money. Raises InvalidOperation.

    Args:
        came_back: as of `reverse`.
    """
    previous = wire["status"]
    if status == "reversed":
        reverse(store, wire, came_back)
        return
    if previous not in UNDECIDED and (previous, status) != ("submitted", "complete"):
        raise InvalidOperation(f"The wire transfer is {previous}.")
    if status in ("submitted", "complete") and wire["submission"] is None:
        _submit(store, wire)
    elif status in ("rejected", "canceled"):
        release(store, wire["pending_transaction_id"])
    store.save(wire | {"status": status})


def _submit(store: Store, wire: Json) -> None:
    release(store, wire["pending_transaction_id"])
    wire["transaction_id"] = post(
        store,
        wire["account_id"],
        -wire["amount"],
        "wire_transfer_intention",
        _instruction(wire),
        description=_message(wire),
    )
    wire["submission"] = {
        "input_message_accountability_data": _accountability(),
        "submitted_at": timestamp(store.now()),
    }


def _accountability() -> str:
    return f"{datetime.now(UTC):%Y%m%d}MMQFMP0P{uuid.uuid4().int % 10**6:06}"


def reverse(store: Store, wire: Json, came_back: int | None = None) -> None:
    """The other bank sends the money back. Raises InvalidOperation.

    Args:
        came_back: in cents; None: all of it.
    """
    amount = wire["amount"] if came_back is None else came_back
    if wire["status"] != "complete":
        raise InvalidOperation(f"The wire transfer is {wire['status']}, not complete.")
    now = timestamp(store.now())
    reversal: Json = {
        "amount": amount,
        "created_at": now,
        "debtor_routing_number": wire["routing_number"],
        "description": "Inbound wire reversal",
        "input_cycle_date": now[:10],
        "input_message_accountability_data": _accountability(),
        "input_sequence_number": "000001",
        "input_source": "MMQFMP0P",
        "instruction_identification": None,
        "return_reason_additional_information": None,
        "return_reason_code": "AC03",
        "return_reason_code_description": "Invalid creditor account number.",
        "transaction_id": wire["transaction_id"],
        "wire_transfer_id": wire["id"],
    }
    reversal["transaction_id"] = post(
        store,
        wire["account_id"],
        amount,
        "inbound_wire_reversal",
        reversal,
        description="Inbound wire reversal",
    )
    store.settled(wire["id"])
    shown = reversal | {"input_cycle_date": CYCLE_DATE_SHOWN}
    store.save(wire | {"status": "reversed", "reversal": shown}, beyond_sdk=True)


def approve(call: Call) -> Done:
    wire = _pending_approval(call)
    wire["approval"] = {"approved_at": timestamp(call.store.now()), "approved_by": None}
    move(call.store, wire, "pending_creating")
    call.store.due(call.id, call.conduct.wire_seconds * SUBMITTED_AFTER)
    return Done(KIND, call.id)


def cancel(call: Call) -> Done:
    wire = _pending_approval(call)
    wire["cancellation"] = {"canceled_at": timestamp(call.store.now()), "canceled_by": None}
    move(call.store, wire, "canceled")
    return Done(KIND, call.id)


def _pending_approval(call: Call) -> Json:
    wire = call.store.get(KIND, call.id)
    if wire["status"] != "pending_approval":
        raise InvalidOperation(f"The wire transfer is {wire['status']}, not pending_approval.")
    return wire


def simulate_submission(call: Call) -> Done:
    wire = call.store.get(KIND, call.id)
    if wire["status"] not in ("pending_approval", "pending_creating"):
        raise InvalidOperation(f"The wire transfer is {wire['status']}.")
    call.store.settled(call.id)
    move(call.store, wire, "complete")
    return Done(KIND, call.id)


def simulate_reversal(call: Call) -> Done:
    reverse(call.store, call.store.get(KIND, call.id))
    return Done(KIND, call.id)


OPERATIONS = (
    Operation("POST", "/wire_transfers", sdk.WireTransferCreateParams, create),
    Operation(
        "GET",
        "/wire_transfers",
        sdk.WireTransferListParams,
        lambda call: page(call.store, objects(KIND), call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/wire_transfers/{id}", None, lambda call: call.store.text(KIND, call.id)),
    Operation("POST", "/wire_transfers/{id}/approve", None, approve),
    Operation("POST", "/wire_transfers/{id}/cancel", None, cancel),
    Operation("POST", "/simulations/wire_transfers/{id}/submit", None, simulate_submission),
    Operation("POST", "/simulations/wire_transfers/{id}/reverse", None, simulate_reversal),
)
