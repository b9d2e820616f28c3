"""Example requests, by operation. A test binds every one of them, so that the document never shows what is refused."""

from __future__ import annotations

from typing import Any

from libs.contracts import webhook_operations as webhooks
from libs.contracts.webhook_operations import FamilyPair

ADDRESS = {
    "street_1": "21 Harbor Street",
    "city": "Portland",
    "state": "ME",
    "zip_code": "04101",
    "country": "US",
}
_EXTERNAL_BANK_ACCOUNT = {
    "bank_name": "First Harbor Bank",
    "name_on_account": "Tidewater Goods LLC",
    "routing_number": "021000021",
    "account_number": "9876543210",
    "address_on_account": ADDRESS,
}


def _of_both(pair: FamilyPair, request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row.name: request for row in pair}


REQUESTS: dict[str, dict[str, Any]] = {
    "onboarding.onboard_customer": {
        "business": {
            "business_name": "Tidewater Goods LLC",
            "dba": "Tidewater",
            "naics_code": "4539",
            "business_description": "Sells what the tide brings in.",
            "formation_state": "ME",
            "formation_date": "2019-04-01",
            "ein": "12-3456789",
            "phone": "(207) 555-0142",
            "email": "office@tidewater.example.com",
            "website": "https://tidewater.example.com",
            "business_address": ADDRESS,
        },
        "persons": [
            {
                "first_name": "Ada",
                "last_name": "Marsh",
                "date_of_birth": "1980-05-17",
                "home_address": ADDRESS,
                "tin": "212-45-6789",
                "email": "ada@tidewater.example.com",
                "phone": "+12075550143",
                "ownership_percentage": 60,
                "work_title": "Managing member",
                "controller": True,
            }
        ],
        "external_bank_account": _EXTERNAL_BANK_ACCOUNT,
    },
    "onboarding.update_business": {
        "business": {"dba": None, "business_address": {"street_1": "23 Harbor Street"}}
    },
    "onboarding.update_person": {
        "last_name": "Marsh-Hale",
        "employment_status": "employed",
        "home_address": {"zip_code": "04102"},
    },
    "onboarding.add_external_bank_account": {"external_bank_account": _EXTERNAL_BANK_ACCOUNT},
    "payments.decline_wire": {"reason": "The invoice was paid last week."},
    "payments.set_wire_policy": {
        "per_wire_limit": 50000.00,
        "daily_limit": 100000.00,
        "daily_count": 20,
        "approval_threshold": 10000.00,
        "new_payee_hours": 48,
    },
    "payments.send_wire": {
        "sending_account_id": "acc_0000000001",
        "external_account_id": "ext_0000000001",
        "amount": 1250.75,
        "purpose": "Invoice 2047",
    },
    **_of_both(
        webhooks.CREATE_SUBSCRIPTION,
        {
            "event_types": "transaction",
            "callback_url": "https://hooks.tidewater.example.com/bankside",
            "description": "Bookkeeping",
        },
    ),
    **_of_both(webhooks.UPDATE_SUBSCRIPTION, {"event_types": "*", "status": "disabled"}),
    **_of_both(
        webhooks.RECOVER_SUBSCRIPTION,
        {"since": "2026-03-01T00:00:00Z", "until": "2026-03-02T12:00:00Z"},
    ),
}
