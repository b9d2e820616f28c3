"""Partners and their customers, and what they ask for: drawn from a seed."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.e2e.wires.hands import WIRE, WIRES
from tests.faults.campaign.deliveries import Endpoint
from tests.faults.campaign.operations import Kind, Operation
from tests.support.api import Key, encode
from tests.support.live import CUSTOMERS
from tests.support.people import application

SHARES = {
    Kind.WIRE: 0.42,
    Kind.READ: 0.42,
    Kind.UPDATE: 0.06,
    Kind.ONBOARDING: 0.06,
    Kind.SUBSCRIPTION: 0.04,
}
"""Of the operations."""
SUBSCRIBING = 3
"""Subscriptions of a partner that are made, and deleted again, at a time."""
READ_AGAIN = 200
"""The newest wires of a customer, of which one is read."""
SUBSCRIPTIONS = "/partner/reseller/webhooks/subscriptions"


@dataclass
class Customer:
    customer_id: str
    account_id: str
    external_account_id: str
    key: Key
    sent: list[Operation] = field(default_factory=list)
    """Wires that were answered 200."""


@dataclass
class Partner:
    tenant: str
    key: Key
    customers: list[Customer]
    updated: list[str]
    """Customers that are updated, each by one update after the other."""
    endpoint: Endpoint
    account_ids: set[str] = field(default_factory=set)


class Wishes:
    """What is asked for next. Each wire, business and update has a mark that no other has."""

    def __init__(self, draw: random.Random) -> None:
        self.partners: list[Partner] = []
        self._random = draw
        self._dollars = itertools.count(1)
        self._names = itertools.count(1)
        self._updating: set[str] = set()
        self._subscribing: Counter[str] = Counter()

    def wire(self) -> Operation:
        partner = self._random.choice(self.partners)
        customer = self._random.choice(partner.customers)
        amount = next(self._dollars)
        fields = {
            "sending_account_id": customer.account_id,
            "external_account_id": customer.external_account_id,
            "purpose": "Invoice 2047",
        }
        body = f'{json.dumps(fields)[:-1]}, "amount": {amount}.00}}'.encode()
        return Operation(Kind.WIRE, customer.customer_id, "POST", WIRE, body, f"{amount}.00")

    def onboarding(self) -> Operation:
        partner = self._random.choice(self.partners)
        body = application()
        ein = body["business"]["ein"]
        return Operation(Kind.ONBOARDING, partner.tenant, "POST", CUSTOMERS, encode(body), ein)

    def update(self) -> Operation | None:
        """None where each customer has an update under way."""
        partner = self._random.choice(self.partners)
        free = [one for one in partner.updated if one not in self._updating]
        if not free:
            return None
        customer_id = self._random.choice(free)
        return self.update_of(partner, customer_id)

    def update_of(self, partner: Partner, customer_id: str) -> Operation:
        name = f"Name {next(self._names)}"
        body = encode({"business": {"dba": name}})
        target = f"{CUSTOMERS}/business/{customer_id}"
        return Operation(Kind.UPDATE, partner.tenant, "PATCH", target, body, name)

    def subscription(self) -> Operation | None:
        """Of a type that no event of the load has: it is stored and listed, and delivers nothing. None where enough are
        on their way: each is deleted again, since a partner may have so many and no more.
        """
        partner = self._random.choice(self.partners)
        if self._subscribing[partner.tenant] >= SUBSCRIBING:
            return None
        body = {"event_types": "ach.returned", "callback_url": partner.endpoint.url}
        return Operation(Kind.SUBSCRIPTION, partner.tenant, "POST", SUBSCRIPTIONS, encode(body))

    def read(self) -> Operation:
        partner = self._random.choice(self.partners)
        customer = self._random.choice(partner.customers)
        what = self._random.randrange(3)
        if what == 0 and customer.sent:
            wire = self._random.choice(customer.sent[-READ_AGAIN:])
            target = f"{WIRES}/{wire.data['transaction_id']}"
            return Operation(Kind.READ, customer.customer_id, "GET", target, mark=wire.mark)
        if what == 1:
            account_id = self._random.choice(sorted(partner.account_ids))
            target = f"/partner/reseller/accounts/balance/{account_id}"
            return Operation(Kind.READ, partner.tenant, "GET", target)
        return Operation(Kind.READ, customer.customer_id, "GET", "/customer/accounts")

    def next(self) -> Operation | None:
        [kind] = self._random.choices(list(SHARES), list(SHARES.values()))
        return self.new(kind)

    def new(self, kind: Kind) -> Operation | None:
        """None where there can be no other of this kind now."""
        makers: dict[Kind, Callable[[], Operation | None]] = {
            Kind.WIRE: self.wire,
            Kind.ONBOARDING: self.onboarding,
            Kind.UPDATE: self.update,
            Kind.SUBSCRIPTION: self.subscription,
            Kind.READ: self.read,
        }
        return makers[kind]()

    def begun(self, operation: Operation) -> None:
        """It is sent from now on."""
        if operation.kind is Kind.UPDATE:
            self._updating.add(_updated(operation))
        elif operation.kind is Kind.SUBSCRIPTION and operation.method == "POST":
            self._subscribing[operation.owner] += 1

    def ended(self, operation: Operation) -> Operation | None:
        """It is done. What its caller asks for next, if that follows from it."""
        if operation.kind is Kind.UPDATE:
            self._updating.discard(_updated(operation))
        elif operation.kind is Kind.SUBSCRIPTION and operation.method == "POST":
            target = f"{SUBSCRIPTIONS}/{operation.data['subscription_id']}"
            return Operation(Kind.SUBSCRIPTION, operation.owner, "DELETE", target)
        elif operation.kind is Kind.SUBSCRIPTION:
            self._subscribing[operation.owner] -= 1
        return None


def _updated(operation: Operation) -> str:
    return operation.target.rpartition("/")[2]
