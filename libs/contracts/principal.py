"""Who asks: what a verified subscription key stands for."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Family(StrEnum):
    """The route families; the value is the first path segment. Operators' routes have a listener of their own."""

    PARTNER = "partner"
    CUSTOMER = "customer"
    OPERATOR = "operator"


class Role(StrEnum):
    """What an operator may do: viewers read, operators act, admins also manage keys and operators."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"

    def includes(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)


class Scope(StrEnum):
    """What a subscription key may do."""

    CUSTOMERS_READ = "customers:read"
    CUSTOMERS_WRITE = "customers:write"
    ACCOUNTS_READ = "accounts:read"
    WIRES_WRITE = "wires:write"
    WIRES_READ = "wires:read"
    WIRES_APPROVE = "wires:approve"
    POLICIES_WRITE = "policies:write"
    WEBHOOKS_WRITE = "webhooks:write"
    WEBHOOKS_READ = "webhooks:read"
    EVENTS_READ = "events:read"


class Principal(msgspec.Struct, frozen=True):
    """The tenant, and for a customer key the one customer, that a message acts for.

    Fields that this release does not know are ignored. One that narrows what a message may do must not be: it comes
    with a later version of the envelope (`libs.messaging.envelope`).

    Every query of every service is scoped by `tenant`, and by `customer_id` where it is set. `address` is where the
    request of a write came from, for the audit alone; services set none for what they start by themselves.

    An operator acts for all tenants: `tenant` is empty and `operator` the operator's name. `request_id` is that of
    an operator's write, for the audit alone; `browser`, likewise, is where the operator's browser is, which a console
    alone says.
    """

    tenant: str
    tenant_name: str
    family: Family
    subscription_key: str
    customer_id: str | None = None
    address: str | None = None
    operator: str | None = None
    request_id: str | None = None
    browser: str | None = None

    @property
    def actor(self) -> str:
        """Who is recorded as having acted."""
        return f"operator:{self.operator}" if self.operator else self.subscription_key


SERVICE = Principal(tenant="", tenant_name="", family=Family.PARTNER, subscription_key="")
"""A service that asks another one for records of all tenants, or of one whose tenant it does not know."""
