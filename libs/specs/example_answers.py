"""An example of each operation's answer, of the business of the example requests. A test holds each to its schema."""

from __future__ import annotations

from typing import Any

from libs.contracts import webhook_operations as webhooks
from libs.contracts.operation import Operation
from libs.contracts.webhook_operations import FamilyPair
from libs.specs import example_resources as r


def _of_both(pair: FamilyPair, data: Any) -> dict[str, Any]:
    return {row.name: data for row in pair}


_NUMBERED_PAGE = {"limit": 50, "total": 1, "page": 1}

DATA: dict[str, Any] = {
    "onboarding.onboard_customer": {
        "status": "approved",
        "business": {
            "customer_id": r.CUSTOMER_ID,
            "account_id": r.ACCOUNT_ID,
            "account_number": r.ACCOUNT_NUMBER,
        },
        "external_bank_account": {"external_bank_account_id": r.EXTERNAL_ACCOUNT_ID},
        "persons": [{"customer_id": r.PERSON_ID, "first_name": "Ada", "last_name": "Marsh"}],
    },
    "onboarding.update_business": None,
    "onboarding.update_person": None,
    "onboarding.add_external_bank_account": {"external_bank_account_id": "ext_0000000002"},
    "onboarding.list_customers": [r.CUSTOMER],
    "onboarding.get_customer": r.CUSTOMER,
    "ledger_read.list_partner_accounts": {
        "name": "Acme Financial",
        "dba_name": None,
        "accounts": [{**r.ACCOUNT_SUMMARY, **r.ACCOUNT_STANDING}],
    },
    "ledger_read.get_account": r.ACCOUNT,
    "ledger_read.get_balance": {
        "account_id": r.ACCOUNT_ID,
        "account_number": r.ACCOUNT_NUMBER,
        "available_balance": {"amount": 23749.25, "currency": "USD"},
        "held_balance": {"amount": 1250.75, "currency": "USD"},
        "total_balance": {"amount": 25000.00, "currency": "USD"},
        "system_timestamp": "2026-03-02T15:04:05.678901Z",
    },
    "ledger_read.get_external_account": {
        "external_account_id": r.EXTERNAL_ACCOUNT_ID,
        "external_account_number": "9876543210",
        "external_account_title": "Tidewater Goods LLC",
        "external_institution_aba": "021000021",
        "external_institution_name": "First Harbor Bank",
    },
    "ledger_read.list_customer_accounts": {
        "name": "Tidewater Goods LLC",
        "dba_name": "Tidewater",
        "accounts": [r.ACCOUNT_SUMMARY],
    },
    "ledger_read.list_external_accounts": [r.LINKED_EXTERNAL_ACCOUNT],
    "ledger_read.list_statements": [
        {
            **r.STATEMENT_PERIOD,
            "formats": {
                "format": "pdf",
                "url": "https://bank.example.com/statements/2026-02.pdf?expires=1772471045&signature=5f0c1e",
                "url_expires_at": "2026-03-02T15:19:05.000000Z",
            },
        }
    ],
    "ledger_read.list_ach_requests": [r.ACH_REQUEST],
    "ledger_read.list_transactions": [r.TRANSACTION],
    "ledger_read.list_deposit_locations": [
        {
            "location_id": 17,
            "name": "Casco Bay Savings",
            "city_and_state": "Portland, ME",
            "balance": 25000.00,
        }
    ],
    "ledger_read.list_settlement_calculations": [
        {
            "reserve_account_number": "4400000002",
            "amount": "-1250.75",
            "ach_file": "debit",
            "created_at": "2026-03-02T22:00:00.000000Z",
            "settlement_date": "2026-03-03",
        }
    ],
    "payments.send_wire": r.WIRE_RESULT,
    "payments.list_wires": [r.WIRE],
    "payments.get_wire": r.WIRE,
    "payments.cancel_wire": r.CANCELED_WIRE,
    "payments.approve_wire": r.WIRE_RESULT,
    "payments.decline_wire": r.DECLINED_WIRE,
    "payments.get_wire_policy": r.WIRE_POLICY,
    "payments.set_wire_policy": r.WIRE_POLICY,
    "payments.get_own_wire_policy": r.WIRE_POLICY,
    **_of_both(webhooks.CREATE_SUBSCRIPTION, r.SUBSCRIPTION),
    **_of_both(webhooks.LIST_SUBSCRIPTIONS, [r.SUBSCRIPTION]),
    **_of_both(webhooks.GET_SUBSCRIPTION, r.SUBSCRIPTION),
    **_of_both(
        webhooks.GET_HEALTH,
        {
            "state": "healthy",
            "since": "2026-03-01T09:30:00.000000Z",
            "last_success_at": "2026-03-02T15:04:07.120000Z",
            "last_error": {
                "at": "2026-03-01T09:29:00.000000Z",
                "response_status": 503,
                "error": None,
            },
            "next_probe_at": None,
            "pending": 0,
            "failing": 0,
        },
    ),
    **_of_both(
        webhooks.UPDATE_SUBSCRIPTION,
        {**r.SUBSCRIPTION, "event_type": "*", "status": "disabled"},
    ),
    **_of_both(webhooks.DELETE_SUBSCRIPTION, None),
    **_of_both(
        webhooks.GET_SECRET,
        {
            "secret": "whsec_QmFua3NpZGUgZXhhbXBsZSBzZWNyZXQsIDMyIGJ5dGU=",
            "previous_secret_expires_at": None,
        },
    ),
    **_of_both(
        webhooks.ROTATE_SECRET,
        {
            "secret": "whsec_QSBuZXcgZXhhbXBsZSBzZWNyZXQgb2YgMzIgYnl0ZXM=",
            "previous_secret_expires_at": "2026-03-03T15:04:05.000000Z",
        },
    ),
    **_of_both(
        webhooks.TEST_SUBSCRIPTION,
        {**r.DELIVERY, **r.NOT_SENT_YET, "event_type": "webhook_subscription.test"},
    ),
    **_of_both(webhooks.LIST_DELIVERIES, [r.DELIVERY]),
    **_of_both(
        webhooks.GET_DELIVERY,
        {
            **r.DELIVERY,
            "attempts": [
                {
                    "attempted_at": "2026-03-02T15:04:07.000000Z",
                    "duration_ms": 120,
                    "response_status": 200,
                    "error": None,
                    "response_body": "ok",
                }
            ],
        },
    ),
    **_of_both(webhooks.RESEND_DELIVERY, {**r.DELIVERY, **r.NOT_SENT_YET}),
    **_of_both(webhooks.RECOVER_SUBSCRIPTION, {"scheduled": 12}),
    **_of_both(webhooks.LIST_EVENTS, [r.EVENT]),
    **_of_both(webhooks.GET_EVENT, r.EVENT),
}
"""`data`, by operation."""


def example_answer(row: Operation) -> dict[str, Any] | None:
    """The whole answer; None for operations without an example."""
    if row.name not in DATA:
        return None
    answer: dict[str, Any] = {"message": row.message, "data": DATA[row.name]}
    if row.as_of_date:
        return {**answer, "pagination": {"limit": 50, "total": 1, "offset": 0}, "as_of_date": r.DAY}
    return {**answer, "pagination": _NUMBERED_PAGE} if row.pagination else answer
