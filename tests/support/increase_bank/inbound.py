"""Money that others send or pull: inbound wires and ACH entries, and interest."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from increase import types as sdk
from increase.types import simulations as simulated

from tests.support.increase_bank.accounts import open_account
from tests.support.increase_bank.calls import Call, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import POSTINGS, objects, page
from tests.support.increase_bank.postings import available, find, hold, post, release
from tests.support.increase_bank.shapes import Json, timestamp
from tests.support.increase_bank.store import Store

WIRE, ACH = "inbound_wire_transfer", "inbound_ach_transfer"
SENDER = "101050001"
WIRE_FIELDS = (
    "creditor_address_line1",
    "creditor_address_line2",
    "creditor_address_line3",
    "creditor_name",
    "debtor_address_line1",
    "debtor_address_line2",
    "debtor_address_line3",
    "debtor_name",
    "end_to_end_identification",
    "instructing_agent_routing_number",
    "instruction_identification",
    "purpose",
    "unique_end_to_end_transaction_reference",
    "unstructured_remittance_information",
)
"""What the sending bank sets, in the wire and in its transaction."""


def receive_wire(call: Call) -> Done:
    body = call.body
    number = call.store.get("account_number", body["account_number_id"])
    wire_id = new_id(WIRE)
    sent = {name: body.get(name) for name in WIRE_FIELDS}
    accountability = f"{datetime.now(UTC):%Y%m%d}MMQFMP0P{uuid.uuid4().int % 10**6:06}"
    wire: Json = {
        "id": wire_id,
        "type": WIRE,
        "account_id": number["account_id"],
        "account_number_id": number["id"],
        "amount": body["amount"],
        "description": "Inbound wire transfer",
        "input_message_accountability_data": accountability,
        "debtor_account_number": "987654321",
        "debtor_routing_number": SENDER,
        "status": "declined",
        "wire_drawdown_request_id": body.get("wire_drawdown_request_id"),
        **sent,
    }
    if _can_receive(call.store, number):
        posting_id = post(
            call.store,
            number["account_id"],
            body["amount"],
            WIRE,
            {
                "amount": body["amount"],
                "description": "Inbound wire transfer",
                "input_message_accountability_data": accountability,
                "transfer_id": wire_id,
                **sent,
            },
            description=sent["unstructured_remittance_information"]
            or sent["debtor_name"]
            or "Inbound wire transfer",
            route_id=number["id"],
        )
        wire["status"] = "accepted"
        wire["acceptance"] = {
            "accepted_at": timestamp(call.store.now()),
            "transaction_id": posting_id,
        }
    call.store.put(wire)
    return Done(WIRE, wire_id)


def _can_receive(store: Store, number: Json) -> bool:
    account = store.get("account", number["account_id"])
    return (number["status"], account["status"]) == ("active", "open")


def receive_ach(call: Call) -> Done:
    body, store = call.body, call.store
    number = store.get("account_number", body["account_number_id"])
    amount, transfer_id = body["amount"], new_id(ACH)
    now = timestamp(store.now())
    names: Json = {
        "originator_company_descriptive_date": body.get("company_descriptive_date"),
        "originator_company_discretionary_data": body.get("company_discretionary_data"),
        "originator_company_entry_description": body.get("company_entry_description", "PAYMENT"),
        "originator_company_id": body.get("company_id", "0987654321"),
        "originator_company_name": body.get("company_name", "UNNAMED COMPANY"),
        "receiver_id_number": body.get("receiver_id_number"),
        "receiver_name": body.get("receiver_name"),
        "trace_number": f"{uuid.uuid4().int % 10**15:015}",
    }
    transfer: Json = {
        "id": transfer_id,
        "type": ACH,
        "account_id": number["account_id"],
        "account_number_id": number["id"],
        "amount": abs(amount),
        "automatically_resolves_at": body.get("resolve_at", now),
        "direction": "credit" if amount > 0 else "debit",
        "effective_date": now[:10],
        "originator_routing_number": SENDER,
        "settlement": {"settled_at": now, "settlement_schedule": "same_day"},
        "standard_entry_class_code": body.get(
            "standard_entry_class_code", "corporate_credit_or_debit"
        ),
        "status": "accepted",
        **names,
    }
    reason = _why_declined(store, number, amount)
    if reason is None:
        posting_id = post(
            store,
            number["account_id"],
            amount,
            ACH,
            {"amount": amount, "transfer_id": transfer_id, **names},
            description=str(
                body.get("company_entry_description", names["originator_company_name"])
            ),
            route_id=number["id"],
        )
        transfer["acceptance"] = {"accepted_at": now, "transaction_id": posting_id}
    else:
        transfer["status"] = "declined"
        transfer["decline"] = {
            "declined_at": now,
            "declined_transaction_id": new_id("declined_transaction"),
            "reason": reason,
        }
    store.put(transfer)
    return Done(ACH, transfer_id)


def _why_declined(store: Store, number: Json, amount: int) -> str | None:
    if not _can_receive(store, number):
        return "ach_route_disabled"
    if amount < 0:
        if number["inbound_ach"]["debit_status"] == "blocked":
            return "ach_route_disabled"
        if available(store, number["account_id"]) < -amount:
            return "insufficient_funds"
    return None


def pay_interest(call: Call) -> Done:
    body, now = call.body, timestamp(call.store.now())
    account = open_account(call.store, body["account_id"])
    end = body.get("period_end", now)
    posting_id = post(
        call.store,
        account["id"],
        body["amount"],
        "interest_payment",
        {
            "accrued_on_account_id": body.get("accrued_on_account_id", account["id"]),
            "amount": body["amount"],
            "currency": "USD",
            "period_end": end,
            "period_start": body.get("period_start", now),
        },
        description=f"Interest payment for {end[:7]}",
    )
    return Done("transaction", posting_id)


def hold_by_customer(call: Call) -> Done:
    account = open_account(call.store, call.body["account_id"])
    description = call.body.get("description")
    held = hold(
        call.store,
        account["id"],
        -call.body["amount"],
        "user_initiated_hold",
        {"description": description},
        description or "Hold",
    )
    return Done("pending_transaction", held)


def release_by_customer(call: Call) -> Done:
    held = call.store.get("pending_transaction", call.id)
    if held["source"]["category"] != "user_initiated_hold" or held["status"] != "pending":
        raise InvalidOperation("Only a pending hold of the user's own can be released.")
    release(call.store, call.id)
    return Done("pending_transaction", call.id)


def _list(kind: str, call: Call) -> str:
    return page(call.store, objects(kind), call.query, call.conduct.page_limit)


def _pending(call: Call) -> str:
    call.query.setdefault("status", {"in": ["pending"]})
    return _list("pending_transaction", call)


OPERATIONS = (
    Operation(
        "GET",
        "/transactions",
        sdk.TransactionListParams,
        lambda call: page(call.store, POSTINGS, call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/transactions/{id}", None, lambda call: find(call.store, call.id)),
    Operation("GET", "/pending_transactions", sdk.PendingTransactionListParams, _pending),
    Operation(
        "GET",
        "/pending_transactions/{id}",
        None,
        lambda call: call.store.text("pending_transaction", call.id),
    ),
    Operation(
        "POST", "/pending_transactions", sdk.PendingTransactionCreateParams, hold_by_customer
    ),
    Operation("POST", "/pending_transactions/{id}/release", None, release_by_customer),
    Operation(
        "GET",
        "/inbound_wire_transfers",
        sdk.InboundWireTransferListParams,
        lambda call: _list(WIRE, call),
    ),
    Operation(
        "GET", "/inbound_wire_transfers/{id}", None, lambda call: call.store.text(WIRE, call.id)
    ),
    Operation(
        "GET",
        "/inbound_ach_transfers",
        sdk.InboundACHTransferListParams,
        lambda call: _list(ACH, call),
    ),
    Operation(
        "GET", "/inbound_ach_transfers/{id}", None, lambda call: call.store.text(ACH, call.id)
    ),
    Operation(
        "POST",
        "/simulations/inbound_wire_transfers",
        simulated.InboundWireTransferCreateParams,
        receive_wire,
    ),
    Operation(
        "POST",
        "/simulations/inbound_ach_transfers",
        simulated.InboundACHTransferCreateParams,
        receive_ach,
    ),
    Operation(
        "POST",
        "/simulations/interest_payments",
        simulated.InterestPaymentCreateParams,
        pay_interest,
    ),
)
