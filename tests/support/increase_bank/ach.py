"""ACH transfers that the bank's customer originates: a positive amount pushes money out, a negative one pulls it in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from increase import types as sdk
from increase.types import simulations as simulated

from tests.support.increase_bank.accounts import open_account
from tests.support.increase_bank.calls import Call, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation, InvalidParameters
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.postings import hold, post, release
from tests.support.increase_bank.shapes import Json, timestamp
from tests.support.increase_bank.store import Store
from tests.support.increase_bank.wires import destination

KIND = "ach_transfer"
RETURN_CODES = {
    "insufficient_fund": "R01",
    "account_closed": "R02",
    "no_account": "R03",
    "invalid_account_number_structure": "R04",
    "authorization_revoked_by_customer": "R07",
    "payment_stopped": "R08",
    "uncollected_funds": "R09",
    "customer_advised_unauthorized_improper_ineligible_or_incomplete": "R10",
    "representative_payee_deceased_or_unable_to_continue_in_that_capacity": "R14",
    "beneficiary_or_account_holder_deceased": "R15",
    "account_frozen_entry_returned_per_ofac_instruction": "R16",
    "file_record_edit_criteria": "R17",
    "non_transaction_account": "R20",
    "credit_entry_refused_by_receiver": "R23",
    "duplicate_entry": "R24",
    "corporate_customer_advised_not_authorized": "R29",
    "unauthorized_debit_to_consumer_account_using_corporate_sec_code": "R05",
}
"""Of Nacha's table; a reason that is not here is returned as R17."""
COPIED = (
    "company_descriptive_date",
    "company_discretionary_data",
    "company_entry_description",
    "company_name",
    "individual_id",
    "individual_name",
)
"""Parameters that the object repeats as they are."""


def create(call: Call) -> Done:
    body = call.body
    account = open_account(call.store, body["account_id"])
    if body["amount"] == 0:
        raise InvalidParameters.of("amount", "must not be zero")
    number, routing_number = destination(call)
    preferred = body.get("preferred_effective_date", {"settlement_schedule": "same_day"})
    transfer: Json = {
        "id": new_id(KIND),
        "type": KIND,
        "account_id": account["id"],
        "account_number": number,
        "addenda": body.get("addenda"),
        "amount": body["amount"],
        "company_id": "1234987601",
        "created_by": {"category": "api_key", "api_key": {"description": None}},
        "currency": "USD",
        "destination_account_holder": body.get("destination_account_holder", "unknown"),
        "external_account_id": body.get("external_account_id"),
        "funding": body.get("funding", "checking"),
        "idempotency_key": call.key,
        "network": "ach",
        "notifications_of_change": [],
        "preferred_effective_date": dict(preferred),
        "routing_number": routing_number,
        "standard_entry_class_code": body.get(
            "standard_entry_class_code", "corporate_credit_or_debit"
        ),
        "statement_descriptor": body["statement_descriptor"],
        "status": "pending_approval" if body.get("require_approval") else "pending_submission",
        **{name: body.get(name) for name in COPIED},
    }
    if body["amount"] > 0:
        transfer["pending_transaction_id"] = hold(
            call.store,
            account["id"],
            body["amount"],
            "ach_transfer_instruction",
            {"amount": body["amount"], "transfer_id": transfer["id"]},
            body["statement_descriptor"],
        )
    call.store.put(transfer)
    return Done(KIND, transfer["id"])


def submit(store: Store, transfer: Json) -> None:
    release(store, transfer.get("pending_transaction_id"))
    transfer["transaction_id"] = post(
        store,
        transfer["account_id"],
        -transfer["amount"],
        "ach_transfer_intention",
        {
            "account_number": transfer["account_number"],
            "amount": transfer["amount"],
            "routing_number": transfer["routing_number"],
            "statement_descriptor": transfer["statement_descriptor"],
            "transfer_id": transfer["id"],
        },
        description=transfer["statement_descriptor"],
    )
    now = datetime.now(UTC)
    transfer["status"] = "submitted"
    transfer["submission"] = {
        "administrative_returns_expected_by": (now + timedelta(days=5)).isoformat(),
        "effective_date": f"{now:%Y-%m-%d}",
        "expected_funds_settlement_at": (now + timedelta(days=1)).isoformat(),
        "expected_settlement_schedule": "future_dated",
        "submitted_at": timestamp(store.now()),
        "trace_number": _trace_number(store),
    }


def _trace_number(store: Store) -> str:
    row = store.row("SELECT max(seq) FROM posting")
    return f"05834923{0 if row is None else row[0]:07}"


def _in(call: Call, *statuses: str) -> Json:
    transfer = call.store.get(KIND, call.id)
    if transfer["status"] not in statuses:
        raise InvalidOperation(f"The ACH transfer is {transfer['status']}.")
    return transfer


def approve(call: Call) -> Done:
    transfer = _in(call, "pending_approval")
    transfer["approval"] = {"approved_at": timestamp(call.store.now()), "approved_by": None}
    call.store.save(transfer | {"status": "pending_submission"})
    return Done(KIND, call.id)


def cancel(call: Call) -> Done:
    transfer = _in(call, "pending_approval")
    release(call.store, transfer["pending_transaction_id"])
    transfer["cancellation"] = {"canceled_at": timestamp(call.store.now()), "canceled_by": None}
    call.store.save(transfer | {"status": "canceled"})
    return Done(KIND, call.id)


def simulate_submission(call: Call) -> Done:
    transfer = _in(call, "pending_approval", "pending_submission")
    submit(call.store, transfer)
    call.store.save(transfer)
    return Done(KIND, call.id)


def simulate_acknowledgement(call: Call) -> Done:
    transfer = _in(call, "submitted")
    transfer["acknowledgement"] = {"acknowledged_at": timestamp(call.store.now())}
    call.store.save(transfer)
    return Done(KIND, call.id)


def simulate_settlement(call: Call) -> Done:
    transfer = _in(call, "pending_submission", "submitted")
    if transfer["status"] == "pending_submission":
        submit(call.store, transfer)
    transfer["settlement"] = {"settled_at": timestamp(call.store.now())}
    call.store.save(transfer)
    return Done(KIND, call.id)


def simulate_return(call: Call) -> Done:
    transfer = _in(call, "submitted")
    reason = call.body.get("reason", "no_account")
    returned: Json = {
        "addenda_information": call.body.get("addenda_information"),
        "created_at": timestamp(call.store.now()),
        "raw_return_reason_code": RETURN_CODES.get(reason, "R17"),
        "return_reason_code": reason,
        "trace_number": _trace_number(call.store),
        "transaction_id": transfer["transaction_id"],
        "transfer_id": transfer["id"],
    }
    returned["transaction_id"] = post(
        call.store,
        transfer["account_id"],
        transfer["amount"],
        "ach_transfer_return",
        returned,
        description=transfer["statement_descriptor"],
    )
    call.store.save(transfer | {"status": "returned", "return": returned})
    return Done(KIND, call.id)


OPERATIONS = (
    Operation("POST", "/ach_transfers", sdk.ACHTransferCreateParams, create),
    Operation(
        "GET",
        "/ach_transfers",
        sdk.ACHTransferListParams,
        lambda call: page(call.store, objects(KIND), call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/ach_transfers/{id}", None, lambda call: call.store.text(KIND, call.id)),
    Operation("POST", "/ach_transfers/{id}/approve", None, approve),
    Operation("POST", "/ach_transfers/{id}/cancel", None, cancel),
    Operation("POST", "/simulations/ach_transfers/{id}/submit", None, simulate_submission),
    Operation(
        "POST", "/simulations/ach_transfers/{id}/acknowledge", None, simulate_acknowledgement
    ),
    Operation(
        "POST",
        "/simulations/ach_transfers/{id}/settle",
        simulated.ACHTransferSettleParams,
        simulate_settlement,
    ),
    Operation(
        "POST",
        "/simulations/ach_transfers/{id}/return",
        simulated.ACHTransferReturnParams,
        simulate_return,
    ),
)
