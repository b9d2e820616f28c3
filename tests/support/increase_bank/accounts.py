"""Accounts, their numbers and balances, and accounts at other banks."""

from __future__ import annotations

from increase import types as sdk

from tests.support.increase_bank.calls import Call, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation, InvalidParameters
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.postings import balance_lookup, balances
from tests.support.increase_bank.programs import the_program
from tests.support.increase_bank.shapes import Json, microseconds, timestamp
from tests.support.increase_bank.store import Store

KIND, NUMBER, EXTERNAL = "account", "account_number", "external_account"
ROUTING_NUMBER = "101050001"


def create(call: Call) -> Done:
    body = call.body
    if "loan" in body or body.get("funding", "deposits") != "deposits":
        raise InvalidParameters.of("funding", "this bank opens deposit accounts only")
    if "entity_id" not in body:
        raise InvalidParameters.of("entity_id", "is required")
    entity = call.store.get("entity", body["entity_id"])
    if entity["status"] != "active":
        raise InvalidOperation(f"The entity is {entity['status']}.")
    program = the_program(call.store, body.get("program_id"))
    account = call.store.put(
        {
            "id": new_id(KIND),
            "type": KIND,
            "account_revenue_rate": None,
            "bank": program["bank"],
            "currency": "USD",
            "entity_id": entity["id"],
            "funding": "deposits",
            "idempotency_key": call.key,
            "informational_entity_id": body.get("informational_entity_id"),
            "interest_rate": program["interest_rate"],
            "name": body["name"],
            "program_id": program["id"],
            "status": "open",
        }
    )
    return Done(KIND, account["id"])


def update(call: Call) -> Done:
    account = call.store.get(KIND, call.id)
    if "loan" in call.body:
        raise InvalidOperation("The account is not a loan account.")
    call.store.save(account | call.body)
    return Done(KIND, call.id)


def close(call: Call) -> Done:
    account = open_account(call.store, call.id)
    if balances(call.store, call.id) != (0, 0):
        raise InvalidOperation("The account must have a zero balance.")
    account |= {"status": "closed", "closed_at": timestamp(call.store.now())}
    call.store.save(account)
    return Done(KIND, call.id)


def open_account(store: Store, account_id: str) -> Json:
    """Raises ObjectNotFound, InvalidOperation."""
    account = store.get(KIND, account_id)
    if account["status"] != "open":
        raise InvalidOperation(f"Account {account_id} is closed.")
    return account


def balance(call: Call) -> str:
    call.store.text(KIND, call.id)
    at = call.query.get("at_time")
    return balance_lookup(call.store, call.id, None if at is None else microseconds(at))


def create_number(call: Call) -> Done:
    account = open_account(call.store, call.body["account_id"])
    inbound_ach = call.body.get("inbound_ach", {"debit_status": "allowed"})
    number = call.store.put(
        {
            "id": new_id(NUMBER),
            "type": NUMBER,
            "account_id": account["id"],
            "account_number": _free_number(call.store),
            "idempotency_key": call.key,
            "inbound_ach": inbound_ach,
            "inbound_checks": call.body.get("inbound_checks", {"status": "check_transfers_only"}),
            "name": call.body["name"],
            "routing_number": ROUTING_NUMBER,
            "status": "active",
        }
    )
    return Done(NUMBER, number["id"])


def _free_number(store: Store) -> str:
    """Follows from the number of the row that the account number will have."""
    row = store.row("SELECT coalesce(max(seq), 0) + 1 FROM object")
    assert row is not None
    return f"7{row[0]:011}"


def update_number(call: Call) -> Done:
    number = call.store.get(NUMBER, call.id)
    if number["status"] == "canceled":
        raise InvalidOperation("The account number is canceled.")
    call.store.save(number | call.body)
    return Done(NUMBER, call.id)


def create_external(call: Call) -> Done:
    body = call.body
    if not is_routing_number(body["routing_number"]):
        raise InvalidParameters.of("routing_number", "is not a routing number")
    external = call.store.put(
        {
            "id": new_id(EXTERNAL),
            "type": EXTERNAL,
            "account_holder": body.get("account_holder", "unknown"),
            "account_number": body["account_number"],
            "description": body["description"],
            "funding": body.get("funding", "checking"),
            "idempotency_key": call.key,
            "routing_number": body["routing_number"],
            "status": "active",
        }
    )
    return Done(EXTERNAL, external["id"])


def is_routing_number(number: str) -> bool:
    """Whether the ABA check digit is right."""
    weights = (3, 7, 1) * 3
    return sum(w * int(d) for w, d in zip(weights, number, strict=True)) % 10 == 0


def update_external(call: Call) -> Done:
    call.store.save(call.store.get(EXTERNAL, call.id) | call.body)
    return Done(EXTERNAL, call.id)


def active_external(store: Store, external_account_id: str) -> Json:
    """Raises ObjectNotFound, InvalidOperation."""
    external = store.get(EXTERNAL, external_account_id)
    if external["status"] != "active":
        raise InvalidOperation(f"External account {external_account_id} is archived.")
    return external


def _list(kind: str, call: Call) -> str:
    return page(call.store, objects(kind), call.query, call.conduct.page_limit)


OPERATIONS = (
    Operation("POST", "/accounts", sdk.AccountCreateParams, create),
    Operation("GET", "/accounts", sdk.AccountListParams, lambda call: _list(KIND, call)),
    Operation("GET", "/accounts/{id}", None, lambda call: call.store.text(KIND, call.id)),
    Operation("PATCH", "/accounts/{id}", sdk.AccountUpdateParams, update),
    Operation("POST", "/accounts/{id}/close", None, close),
    Operation("GET", "/accounts/{id}/balance", sdk.AccountBalanceParams, balance),
    Operation("POST", "/account_numbers", sdk.AccountNumberCreateParams, create_number),
    Operation(
        "GET", "/account_numbers", sdk.AccountNumberListParams, lambda call: _list(NUMBER, call)
    ),
    Operation("GET", "/account_numbers/{id}", None, lambda call: call.store.text(NUMBER, call.id)),
    Operation("PATCH", "/account_numbers/{id}", sdk.AccountNumberUpdateParams, update_number),
    Operation("POST", "/external_accounts", sdk.ExternalAccountCreateParams, create_external),
    Operation(
        "GET",
        "/external_accounts",
        sdk.ExternalAccountListParams,
        lambda call: _list(EXTERNAL, call),
    ),
    Operation(
        "GET", "/external_accounts/{id}", None, lambda call: call.store.text(EXTERNAL, call.id)
    ),
    Operation("PATCH", "/external_accounts/{id}", sdk.ExternalAccountUpdateParams, update_external),
)
