"""The IntraFi network: an enrolled account's balance, spread over banks that each insure a part of it."""

from __future__ import annotations

import hashlib
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from increase import types as sdk

from tests.support.increase_bank.accounts import open_account
from tests.support.increase_bank.calls import Call, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation, ObjectNotFound
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.postings import balances
from tests.support.increase_bank.shapes import Json, rendered
from tests.support.increase_bank.store import Store

KIND = "intrafi_account_enrollment"
INSURED = 250_000_00
NEW_YORK = ZoneInfo("America/New_York")
TOWNS = (
    ("Alder Falls", "OR"),
    ("Birch Harbor", "ME"),
    ("Cedar Point", "WA"),
    ("Dunmore", "PA"),
    ("Elk Ridge", "CO"),
    ("Fairhaven", "MA"),
    ("Granite Bay", "NH"),
    ("Hollow Creek", "TN"),
)
NAMES = ("Savings Bank", "Trust Company", "National Bank", "Community Bank", "Mutual Bank")
FIRST_CERTIFICATE = 90_001
SATURDAY = 5


def business_day() -> date:
    """Today in New York, or the last weekday before."""
    day = datetime.now(NEW_YORK).date()
    while day.weekday() >= SATURDAY:
        day -= timedelta(days=1)
    return day


def rebalance(store: Store, account_id: str) -> str:
    """Spread what the account holds now, as of the last business day; the answer."""
    total, _ = balances(store, account_id)
    first = int(hashlib.sha256(account_id.encode()).hexdigest()[:4], 16) % len(TOWNS)
    parts: list[Json] = []
    left = total
    while left > 0:
        number = first + len(parts)
        town, state = TOWNS[number % len(TOWNS)]
        series, name = divmod(number // len(TOWNS), len(NAMES))
        part = min(left, INSURED)
        parts.append(
            {
                "balance": part,
                "bank": f"{town} {NAMES[name]}" + (f" {series + 1}" if series else ""),
                "bank_location": {"city": town, "state": state},
                "fdic_certificate_number": str(FIRST_CERTIFICATE + number),
            }
        )
        left -= part
    day = business_day().isoformat()
    text = rendered(
        sdk.IntrafiBalance,
        {
            "type": "intrafi_balance",
            "balances": parts,
            "currency": "USD",
            "effective_date": day,
            "total_balance": total,
        },
    )
    store.execute(
        "INSERT INTO sweep VALUES (?, ?, ?)"
        " ON CONFLICT (account_id, effective_date) DO UPDATE SET body = excluded.body",
        (account_id, day, text),
    )
    return text


def balance(call: Call) -> str:
    """What the network holds as of the last business day."""
    call.store.text("account", call.id)
    if _enrollment(call.store, call.id) is None:
        raise ObjectNotFound(f"Account {call.id} is not enrolled with IntraFi.")
    row = call.store.row(
        "SELECT body FROM sweep WHERE account_id = ? AND effective_date = ?",
        (call.id, business_day().isoformat()),
    )
    return rebalance(call.store, call.id) if row is None else str(row[0])


def _enrollment(store: Store, account_id: str) -> str | None:
    row = store.row(
        "SELECT id FROM object WHERE account_id = ? AND kind = ? AND status = 'enrolled'",
        (account_id, KIND),
    )
    return None if row is None else str(row[0])


def enroll(call: Call) -> Done:
    """At once: in production it takes a business day."""
    account = open_account(call.store, call.body["account_id"])
    if _enrollment(call.store, account["id"]) is not None:
        raise InvalidOperation("The account is enrolled already.")
    made = call.store.put(
        {
            "id": new_id(KIND),
            "type": KIND,
            "account_id": account["id"],
            "email_address": call.body["email_address"],
            "idempotency_key": call.key,
            "intrafi_id": new_id("intrafi")[8:17],
            "status": "enrolled",
        }
    )
    return Done(KIND, made["id"])


def unenroll(call: Call) -> Done:
    enrollment = call.store.get(KIND, call.id)
    if enrollment["status"] != "enrolled":
        raise InvalidOperation(f"The enrollment is {enrollment['status']}.")
    call.store.save(enrollment | {"status": "unenrolled"})
    return Done(KIND, call.id)


OPERATIONS = (
    Operation("GET", "/accounts/{id}/intrafi_balance", None, balance),
    Operation(
        "POST", "/intrafi_account_enrollments", sdk.IntrafiAccountEnrollmentCreateParams, enroll
    ),
    Operation(
        "GET",
        "/intrafi_account_enrollments",
        sdk.IntrafiAccountEnrollmentListParams,
        lambda call: page(call.store, objects(KIND), call.query, call.conduct.page_limit),
    ),
    Operation(
        "GET",
        "/intrafi_account_enrollments/{id}",
        None,
        lambda call: call.store.text(KIND, call.id),
    ),
    Operation("POST", "/intrafi_account_enrollments/{id}/unenroll", None, unenroll),
)
