"""What the bank changes on its own: fields, a primary account, accounts and wires without a request by its API.

What compares the bank with another's books has something to find then. Each change is one that the bank would make, and
is reported in the feeds as far as the same change by the API is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.provider_sandbox import accounts
from services.provider_sandbox.amounts import Amount
from services.provider_sandbox.core.customers import lock_any
from services.provider_sandbox.core.wires import TRANSACTION_ID
from services.provider_sandbox.database import Connection
from services.provider_sandbox.encoding import decode_object
from services.provider_sandbox.fields import Fields, merged
from services.provider_sandbox.identity import records as identities
from services.provider_sandbox.identity.verdicts import number_field, number_of
from services.provider_sandbox.operations import Body, Refusal, Write, not_found
from services.provider_sandbox.wires import records as wires
from services.provider_sandbox.wires.sending import Order, send

Text = Annotated[str, Field(min_length=1, max_length=255)]

_NEWEST_CUSTOMER = """
    SELECT core_id FROM core_customer WHERE customer_id = $1 ORDER BY sequence DESC LIMIT 1
"""


class ChangeFields(Body):
    fields: Fields


class OpenAccount(Body):
    customer_id: Text | None = None
    core_id: Text | None = None
    account_title: Text

    @model_validator(mode="after")
    def _names_one_customer(self) -> Self:
        if (self.customer_id is None) == (self.core_id is None):
            raise ValueError("send customer_id or core_id")
        return self


class SendWire(Body):
    transaction_id: Annotated[str, Field(pattern=f"^{TRANSACTION_ID.pattern}$")]
    account_id: Text
    external_account_id: Text
    amount: Amount
    purpose: Text


async def change_identity(connection: Connection, identity_id: str, body: ChangeFields) -> object:
    """Patch the fields of a record, without a new verdict."""
    record = await identities.lock(connection, identity_id)
    if record["status"] == "canceled":
        raise Refusal(409, "customer_canceled", "A canceled customer is not changed any more.")
    after = merged(decode_object(record["fields"]), body.fields)
    if number_of(record["kind"], after) is None:
        raise Refusal(
            422, "invalid", f"fields.{number_field(record['kind'])} must hold nine digits."
        )
    await identities.set_fields(connection, record, after)
    return identities.shape(record)


async def open_account(connection: Connection, _: str, body: OpenAccount) -> object:
    """Open a deposit account for any customer of core banking, of any kind and status."""
    core_id = body.core_id or await connection.fetchval(
        _NEWEST_CUSTOMER,
        body.customer_id,
    )
    if core_id is None:
        raise not_found("customer")
    customer = await lock_any(connection, core_id)
    account = await accounts.open_account(
        connection, customer["core_id"], "deposit", body.account_title
    )
    return accounts.shape(account)


def send_wire(takes: timedelta) -> Write[SendWire]:
    """Accept a wire as core banking does. `takes`: how long until it is settled."""

    async def handle(connection: Connection, _: str, body: SendWire) -> object:
        order = Order(
            body.transaction_id,
            body.account_id,
            body.external_account_id,
            body.amount,
            body.purpose,
        )
        [refusal] = await send(connection, [order], takes)
        if refusal is not None:
            raise refusal
        return wires.shape(await wires.find(connection, body.transaction_id))

    return Write("send_wire", "POST", "/simulate/wires", handle, SendWire)
