"""A partner with a business, an account that is full of money, and keys whose rates are out of the way."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import aiohttp

from tests.support.api import Api, Key, public_interface
from tests.support.live import bank_of
from tests.support.people import application
from tests.support.stack import Stack

TENANT = "bench"
DEPOSIT = Decimal("1000000000.00")
UNLIMITED = "1000000000"
RATES = tuple(
    part for kind in ("reads", "writes", "wires") for part in (f"--{kind}-per-minute", UNLIMITED)
)
"""Rates are counted as ever; they are only never reached."""


@dataclass(frozen=True)
class Partner:
    """`key` is the partner's, `customer_key` the business's own."""

    key: Key
    customer_key: Key
    account_id: str
    account_number: str
    external_account_id: str


async def onboarded_partner(stack: Stack) -> Partner:
    key = await new_key(stack, "--family", "partner", "--tenant", TENANT)
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        partner = Api(session, stack.base_url, public_interface(), key)
        onboarded = (await partner.post("/partner/reseller/customers", application())).data
        account_id = onboarded["business"]["account_id"]
        await bank_of(stack, session).deposit(account_id, DEPOSIT)
    customer_id = onboarded["business"]["customer_id"]
    return Partner(
        key,
        await new_key(stack, "--family", "customer", "--customer", customer_id),
        account_id,
        onboarded["business"]["account_number"],
        onboarded["external_bank_account"]["external_bank_account_id"],
    )


async def new_key(stack: Stack, *arguments: str) -> Key:
    """Made by the operator's command, with rates that are never reached."""
    made = await stack.command("keys", "create", *arguments, *RATES)
    return Key(made["subscription_key"], made["secret"], made["tenant"])
