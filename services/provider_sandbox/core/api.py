"""Core banking's operations."""

from __future__ import annotations

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
from services.provider_sandbox.idempotency import get_operation
from services.provider_sandbox.operations import NoQuery, Nothing, Operations, Read, Write

OPERATIONS: Operations = (
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
    get_operation("core"),
)
