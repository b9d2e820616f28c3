"""The resources that examples of answers and events show: a business, its account, its wire, its subscription."""

from __future__ import annotations

from typing import Any

from libs.contracts.events import API_VERSION
from libs.specs.examples import ADDRESS

CUSTOMER_ID = "0197a1c2-0000-7c11-9d54-3f2b1c0e8a01"
PERSON_ID = "0197a1c2-0000-7c11-9d54-3f2b1c0e8a02"
TRANSACTION_ID = "0197a1c2-5a3e-7c11-9d54-3f2b1c0e8a77"
SUBSCRIPTION_ID = "0197a1c2-7000-7c11-9d54-3f2b1c0e8a05"
EVENT_ID = "evt_0197a1c2-5b00-7c11-9d54-3f2b1c0e8a78"
ACCOUNT_ID = "acc_0000000001"
ACCOUNT_NUMBER = "4400000001"
EXTERNAL_ACCOUNT_ID = "ext_0000000001"
SUBSCRIPTION_KEY = "sub_4Jd0x9Qm2VbT7yLcW1sKpA"
DAY = "2026-03-01"
MADE_AT = "2026-03-01T14:00:00.000000Z"
SENT_AT = "2026-03-02T15:04:05.678901Z"

_ADDRESS = {**ADDRESS, "street_2": None}

BUSINESS: dict[str, Any] = {
    "business_name": "Tidewater Goods LLC",
    "dba": "Tidewater",
    "naics_code": "4539",
    "business_description": "Sells boat supplies.",
    "formation_state": "ME",
    "formation_date": "2019-04-01",
    "phone": "+12075550142",
    "email": "office@tidewater.example.com",
    "website": "https://tidewater.example.com",
    "business_address": _ADDRESS,
    "mailing_address": _ADDRESS,
    "backup_withholding": False,
    "is_public": False,
    "government_affiliated": False,
    "affiliated_entities": None,
    "operations_abroad": False,
    "international_customers_served": False,
}
PERSON: dict[str, Any] = {
    "customer_id": PERSON_ID,
    "first_name": "Ada",
    "last_name": "Marsh",
    "status": "approved",
}
CUSTOMER: dict[str, Any] = {
    "customer_id": CUSTOMER_ID,
    "status": "approved",
    "issues": [],
    "business": {**BUSINESS, "ein": "6789"},
    "persons": [PERSON],
    "accounts": [{"id": ACCOUNT_ID, "account_number": ACCOUNT_NUMBER, "status": "open"}],
    "external_bank_accounts": [
        {
            "external_bank_account_id": EXTERNAL_ACCOUNT_ID,
            "bank_name": "First Harbor Bank",
            "account_number": "3210",
            "primary": True,
        }
    ],
    "created_at": MADE_AT,
    "updated_at": MADE_AT,
}
LINKED_EXTERNAL_ACCOUNT: dict[str, Any] = {
    "external_account_id": EXTERNAL_ACCOUNT_ID,
    "bank_name": "First Harbor Bank",
    "name_on_account": "Tidewater Goods LLC",
    "routing_number": "021000021",
    "account_number": "3210",
    "primary": True,
}
ACCOUNT_SUMMARY: dict[str, Any] = {
    "id": ACCOUNT_ID,
    "account_number": ACCOUNT_NUMBER,
    "account_group": "deposit",
    "account_title": "Tidewater Goods LLC",
}
ACCOUNT_STANDING: dict[str, Any] = {
    "status": "open",
    "interest_earned_year_to_date": 12.34,
    "annual_percentage_yield_earned": 4.25,
    "close_date": None,
}
ACCOUNT: dict[str, Any] = {
    **ACCOUNT_SUMMARY,
    **ACCOUNT_STANDING,
    "name": "Tidewater Goods LLC",
    "dba_name": "Tidewater",
    "is_restricted": False,
}
STATEMENT_PERIOD: dict[str, Any] = {
    "statement_id": "0197a1c2-6000-7c11-9d54-3f2b1c0e8a03",
    "start_date": "2026-02-01",
    "end_date": "2026-02-28",
    "year": 2026,
    "month": 2,
    "generated_at": "2026-03-01T08:00:00.000000Z",
}
ACH_REQUEST: dict[str, Any] = {
    "reference_id": "ach_0000000001",
    "originating_account_id": ACCOUNT_ID,
    "status": "settled",
    "amount": "1250.75",
    "return_code": None,
    "return_description": None,
    "created_at": MADE_AT,
    "updated_at": SENT_AT,
}
TRANSACTION: dict[str, Any] = {
    "transaction_id": TRANSACTION_ID,
    "account_number": ACCOUNT_NUMBER,
    "account_group": "deposit",
    "type": "wire",
    "settled_at": "2026-03-02T15:10:00.000000Z",
    "counterparty_name": "Tidewater Goods LLC",
    "counterparty_id": EXTERNAL_ACCOUNT_ID,
    "amount": 1250.75,
    "debit_credit_flag": True,
    "tx_uuid": "0197a1c2-6100-7c11-9d54-3f2b1c0e8a04",
}
WIRE_RESULT: dict[str, Any] = {
    "transaction_id": TRANSACTION_ID,
    "sending_account_id": ACCOUNT_ID,
    "external_account_id": EXTERNAL_ACCOUNT_ID,
    "amount": 1250.75,
    "note": "Invoice 2047",
}


def step(state: str, *, at: str = SENT_AT, **more: str | None) -> dict[str, Any]:
    """A step of a wire's history."""
    nothing = dict.fromkeys(("reason", "reason_detail", "by", "comment"))
    return {"state": state, "at": at, **nothing, **more}


ASKED_FOR = step("pending_submission", by=SUBSCRIPTION_KEY)
SUBMITTED = step("submitted", at="2026-03-02T15:04:05.912000Z")


def wire(*steps: dict[str, Any]) -> dict[str, Any]:
    """A wire that went through these."""
    last = steps[-1]
    return {
        **WIRE_RESULT,
        "state": last["state"],
        "reason": last["reason"],
        "reason_detail": last["reason_detail"],
        "history": [*steps],
        "created_at": steps[0]["at"],
        "updated_at": last["at"],
    }


WIRE = wire(ASKED_FOR, SUBMITTED)
WAITING = step("pending_approval", by=SUBSCRIPTION_KEY)
ENDED_AT = "2026-03-02T15:10:00.000000Z"
APPROVER = "sub_9kQ2wX7cTb4RfVzL0mJ5nH"
CANCELED_WIRE = wire(ASKED_FOR, step("canceled", at=ENDED_AT, by=SUBSCRIPTION_KEY))
DECLINED_WIRE = wire(
    WAITING,
    step(
        "canceled",
        at=ENDED_AT,
        reason="declined",
        by=APPROVER,
        comment="The invoice was paid last week.",
    ),
)
WIRE_POLICY: dict[str, Any] = {
    "customer_id": CUSTOMER_ID,
    "per_wire_limit": 50000.00,
    "daily_limit": 100000.00,
    "daily_count": 20,
    "approval_threshold": 10000.00,
    "new_payee_hours": 48,
    "updated_at": MADE_AT,
}
SUBSCRIPTION: dict[str, Any] = {
    "subscription_id": SUBSCRIPTION_ID,
    "event_type": "transaction",
    "callback_url": "https://hooks.tidewater.example.com/bankside",
    "description": "Bookkeeping",
    "status": "active",
    "created_at": MADE_AT,
    "updated_at": MADE_AT,
}
DELIVERY: dict[str, Any] = {
    "delivery_id": "0197a1c2-7100-7c11-9d54-3f2b1c0e8a06",
    "event_id": EVENT_ID,
    "event_type": "transaction.created",
    "status": "succeeded",
    "attempts_made": 1,
    "next_attempt_at": None,
    "circuit_breaker": None,
    "created_at": "2026-03-02T15:04:06.000000Z",
}
NOT_SENT_YET: dict[str, Any] = {
    "status": "pending",
    "attempts_made": 0,
    "next_attempt_at": "2026-03-02T15:04:06.000000Z",
}


def event(name: str, data: dict[str, Any], *, sequence: int = 1) -> dict[str, Any]:
    """An event of this type, as it is delivered."""
    return {
        "id": EVENT_ID,
        "type": name,
        "timestamp": SENT_AT,
        "api_version": API_VERSION,
        "sequence": sequence,
        "data": {"object": name.partition(".")[0], **data},
    }


TRANSACTION_EVENT: dict[str, Any] = {
    **TRANSACTION,
    "account_number": ACCOUNT_NUMBER[-4:],
    "account_id": ACCOUNT_ID,
    "customer_id": CUSTOMER_ID,
}
EVENT = event("transaction.created", TRANSACTION_EVENT)
