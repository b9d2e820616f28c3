"""Core banking's operations."""

from __future__ import annotations

from datetime import timedelta

from services.provider_sandbox.core.accounts import OpenAccount, close_account, open_account
from services.provider_sandbox.core.customers import (
    CreateCustomer,
    UpdateCustomer,
    close_customer,
    create_customer,
    get_customer,
    update_customer,
)
from services.provider_sandbox.core.external_accounts import (
    CreateExternalAccount,
    close_external_account,
    create_external_account,
)
from services.provider_sandbox.core.lists import (
    ACCOUNTS,
    CUSTOMERS,
    EXTERNAL_ACCOUNTS,
    WIRES,
)
from services.provider_sandbox.core.wires import get_wire, send_wire
from services.provider_sandbox.feed import get_newest_event, list_events
from services.provider_sandbox.idempotency import get_operation
from services.provider_sandbox.listing import list_all
from services.provider_sandbox.operations import NoQuery, Nothing, Operations, Read, Write


def operations(wire_takes: timedelta, remembered: timedelta) -> Operations:
    """`wire_takes`: until a wire is settled; `remembered`: how long a key is known."""
    return (
        Write("create_customer", "POST", "/customers", create_customer, CreateCustomer),
        Read("get_customer", "/customers/{id}", get_customer, NoQuery),
        Write("update_customer", "PATCH", "/customers/{id}", update_customer, UpdateCustomer),
        Write("close_customer", "POST", "/customers/{id}/close", close_customer, Nothing),
        Write(
            "create_external_account",
            "POST",
            "/external-accounts",
            create_external_account,
            CreateExternalAccount,
        ),
        Write(
            "close_external_account",
            "POST",
            "/external-accounts/{id}/close",
            close_external_account,
            Nothing,
        ),
        Write("open_account", "POST", "/accounts", open_account, OpenAccount),
        Write("close_account", "POST", "/accounts/{id}/close", close_account, Nothing),
        send_wire(wire_takes),
        Read("get_wire", "/wires/{id}", get_wire, NoQuery),
        list_all("list_customers", "/customers", CUSTOMERS),
        list_all("list_external_accounts", "/external-accounts", EXTERNAL_ACCOUNTS),
        list_all("list_accounts", "/accounts", ACCOUNTS),
        list_all("list_wires", "/wires", WIRES),
        list_events("core"),
        get_newest_event("core"),
        get_operation("core", remembered),
    )
