"""Records of both sides that agree, to be made different by a test."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from libs.contracts.customers import CustomerStatus
from libs.contracts.reconciliation import (
    RecordedAccount,
    RecordedCustomer,
    RecordedExternalAccount,
    RecordedParty,
    RecordedWire,
    Told,
)
from libs.contracts.wires import WireState
from services.reconciliation.ports import (
    CoreAccount,
    CoreCustomer,
    CoreExternalAccount,
    CoreWire,
    IdentityRecord,
)
from services.reconciliation.repository.postings import WirePostings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FIELDS = {"business_name": "Anvil Works", "dba": None, "business_address": {"city": "Reno"}}
PERSON_FIELDS = {"first_name": "Ada", "ownership_percentage": 25}


def our_wire(**changes: Any) -> RecordedWire:
    values: dict[str, Any] = {
        "transaction_id": "w_1",
        "tenant": "t_1",
        "customer_id": "c_1",
        "sending_account_id": "acc_1",
        "external_account_id": "ext_1",
        "amount": Decimal("10.00"),
        "state": WireState.COMPLETED,
        "accepted": True,
        "send_begun": True,
        "command_open": False,
        "told": Told.ACCEPTED,
        "updated_at": NOW,
    }
    return RecordedWire(**values | changes)


def their_wire(**changes: Any) -> CoreWire:
    values: dict[str, Any] = {
        "transaction_id": "w_1",
        "state": "completed",
        "amount": Decimal("10.00"),
        "account_id": "acc_1",
        "external_account_id": "ext_1",
    }
    return CoreWire(**values | changes)


def debit(
    postings: int = 1, amount: str = "-10.00", account_id: str | None = "acc_1"
) -> WirePostings:
    return WirePostings("w_1", postings, Decimal(amount), account_id)


def credit(postings: int = 1, amount: str = "10.00", account_id: str = "acc_1") -> WirePostings:
    """What came back of a wire."""
    return WirePostings("r_1", postings, Decimal(amount), account_id)


def our_business(**changes: Any) -> RecordedParty:
    values: dict[str, Any] = {
        "customer_id": "c_1",
        "kind": "business",
        "identity_id": "idn_1",
        "identity_status": "approved",
        "core_id": "cus_1",
        "fields": FIELDS,
        "ein": "123456789",
        "tin": None,
        "date_of_birth": None,
    }
    return RecordedParty(**values | changes)


def our_person(**changes: Any) -> RecordedParty:
    values: dict[str, Any] = {
        "customer_id": "p_1",
        "kind": "person",
        "identity_id": "idn_2",
        "identity_status": "approved",
        "core_id": "cus_2",
        "fields": PERSON_FIELDS,
        "ein": None,
        "tin": "001020003",
        "date_of_birth": "1980-02-03",
    }
    return RecordedParty(**values | changes)


def our_customer(**changes: Any) -> RecordedCustomer:
    values: dict[str, Any] = {
        "tenant": "t_1",
        "customer_id": "c_1",
        "status": CustomerStatus.APPROVED,
        "command_open": False,
        "parties": [our_business(), our_person()],
        "accounts": [
            RecordedAccount(
                account_id="acc_1", account_number="100", account_group="deposit", status="open"
            )
        ],
        "updated_at": NOW,
    }
    return RecordedCustomer(**values | changes)


def our_external_account(**changes: Any) -> RecordedExternalAccount:
    values: dict[str, Any] = {
        "external_account_id": "ext_1",
        "customer_id": "c_1",
        "primary": True,
        "routing_number": "021000021",
        "account_number": "7000001",
    }
    return RecordedExternalAccount(**values | changes)


def identity_business(**changes: Any) -> IdentityRecord:
    values: dict[str, Any] = {
        "identity_id": "idn_1",
        "customer_id": "c_1",
        "kind": "business",
        "status": "approved",
        "fields": {
            "business_name": "Anvil Works",
            "business_address": {"city": "Reno"},
            "ein": "123456789",
        },
    }
    return IdentityRecord(**values | changes)


def identity_person(**changes: Any) -> IdentityRecord:
    values: dict[str, Any] = {
        "identity_id": "idn_2",
        "customer_id": "p_1",
        "kind": "person",
        "status": "approved",
        "fields": {
            "first_name": "Ada",
            "ownership_percentage": Decimal("25.0"),
            "tin": "001020003",
            "date_of_birth": "1980-02-03",
        },
        "business_customer_id": "c_1",
    }
    return IdentityRecord(**values | changes)


def core_business(**changes: Any) -> CoreCustomer:
    at_identity = identity_business()
    values: dict[str, Any] = {
        "core_id": "cus_1",
        "customer_id": "c_1",
        "kind": "business",
        "status": "active",
        "fields": at_identity.fields,
    }
    return CoreCustomer(**values | changes)


def core_person(**changes: Any) -> CoreCustomer:
    values: dict[str, Any] = {
        "core_id": "cus_2",
        "customer_id": "p_1",
        "kind": "person",
        "status": "active",
        "fields": identity_person().fields,
        "business_customer_id": "c_1",
    }
    return CoreCustomer(**values | changes)


def core_account(**changes: Any) -> CoreAccount:
    values: dict[str, Any] = {
        "account_id": "acc_1",
        "account_number": "100",
        "core_id": "cus_1",
        "customer_id": "c_1",
        "status": "open",
    }
    return CoreAccount(**values | changes)


def core_external_account(**changes: Any) -> CoreExternalAccount:
    values: dict[str, Any] = {
        "external_account_id": "ext_1",
        "customer_id": "c_1",
        "routing_number": "021000021",
        "account_number": "7000001",
        "status": "open",
        "primary": True,
    }
    return CoreExternalAccount(**values | changes)
