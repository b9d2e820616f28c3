"""Subscription keys of partners and of their customers. Those of operators belong to `operators`."""

from __future__ import annotations

from decimal import Decimal
from http import HTTPMethod
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from libs.contracts import fields as f
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.model import Command, Model
from libs.contracts.operating.pages import Listed, ListPage, Write
from libs.contracts.operation import GATEWAY, Operation, declared_in
from libs.contracts.principal import Role, Scope
from libs.contracts.sensitive import Sensitive

LONGEST_OVERLAP_HOURS = 720
MOST_NETWORKS = 100

TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
KeyFamily = Literal["partner", "customer"]
PerMinute = Annotated[int, Field(ge=1, le=1_000_000_000)]
Scopes = Annotated[list[Annotated[Scope, Field(strict=False)]], Field(max_length=len(Scope))]
Networks = Annotated[
    list[Annotated[str, StringConstraints(max_length=64)]], Field(max_length=MOST_NETWORKS)
]
"""Such as 203.0.113.0/24; an address alone is a network of one."""


class ListKeys(ListPage):
    """The keys, those that are revoked or expired included."""

    tenant: f.FilterId | None = None
    expiring: f.Flag = False
    """Only those that are active and expire within 14 days."""


class GetKey(Command):
    """A key without its secret."""

    subscription_key: str


class KeyView(Model):
    """A key without its secret."""

    subscription_key: str
    tenant: str
    family: KeyFamily
    """Which operations it signs: those of the partner, or of one customer."""
    customer_id: f.Uuid | None
    """The customer whose key it is; null for a key of the partner."""
    scopes: list[str]
    """What it may do."""
    allowed_networks: list[str]
    """Where its requests may come from; empty: from everywhere."""
    reads_per_minute: int
    """Requests that read, in a minute."""
    writes_per_minute: int
    """Requests that change something, in a minute; wires are counted apart."""
    wires_per_minute: int
    """Wires, in a minute."""
    requires_idempotency_key: bool = False  # as at a release that does not say
    """Whether a write without an Idempotency-Key is refused."""
    created_at: f.UtcDateTime
    expires_at: f.UtcDateTime | None
    """When it ends by itself; null: never."""
    revoked_at: f.UtcDateTime | None
    """When it was revoked; null: it was not."""
    last_used_at: f.UtcDateTime | None
    """To the minute."""
    previous_secret_expires_at: f.UtcDateTime | None = None  # as at a release that does not say
    """Until when the secret before the last rotation signs, or signed, as well; null: it ended with the rotation."""


class CreateKey(Write):
    """A key of a partner, named by `tenant`, or of a customer, whose tenant follows."""

    family: KeyFamily
    """Which operations it signs: those of the partner, or of one customer."""
    tenant: TenantName | None = None
    """The tenant of the partner; absent for the key of a customer."""
    tenant_name: f.Text | None = None
    """Of a new partner; its id when not given."""
    customer_id: f.UuidText | None = None
    """The customer whose key it is; absent for the key of a partner."""
    scopes: Annotated[Scopes, Field(min_length=1)] | None = None
    """All of the family when not given."""
    allowed_networks: Networks = Field(default_factory=list)
    """Where its requests may come from, such as 203.0.113.0/24; empty: from everywhere."""
    reads_per_minute: PerMinute = 6000
    """Requests that read, in a minute."""
    writes_per_minute: PerMinute = 600
    """Requests that change something, in a minute; wires are counted apart."""
    wires_per_minute: PerMinute = 60
    """Wires, in a minute."""
    require_idempotency_key: bool | None = None
    """Whether a write without an Idempotency-Key is refused. When not given: in production yes, in development no."""
    expires_at: f.UtcDateTime | None = None
    """When it ends by itself; absent: never."""


class KeySecret(Model):
    """The secret is not shown again."""

    subscription_key: str
    secret: Annotated[str, Sensitive()]
    """What requests are signed with."""
    tenant: str
    family: KeyFamily
    """Which operations it signs: those of the partner, or of one customer."""


class RotateKey(Write):
    """Give a key a new secret; the one before stays valid for the overlap."""

    subscription_key: str
    overlap_hours: Annotated[f.Number, Field(ge=0, le=LONGEST_OVERLAP_HOURS)] = Decimal(24)
    """For how many hours the secret before stays valid."""


class RevokeKey(Write):
    """Stop a key, for good."""

    subscription_key: str


class ChangeScopes(Write):
    """Change what a key may do."""

    subscription_key: str
    add: Scopes = Field(default_factory=list)
    """What it may do besides."""
    remove: Scopes = Field(default_factory=list)
    """What it may do no more."""


class ChangeNetworks(Write):
    """Change where requests of a key may come from; `anywhere` ends all limits."""

    subscription_key: str
    add: Networks = Field(default_factory=list)
    """Networks that its requests may come from besides."""
    remove: Networks = Field(default_factory=list)
    """Networks that its requests may come from no more."""
    anywhere: bool = False
    """Whether they may come from everywhere; then neither `add` nor `remove` is given."""


LIST_KEYS = Operation(
    name=f"{GATEWAY}.list_keys",
    method=HTTPMethod.GET,
    path="/operator/keys",
    role=Role.VIEWER,
    command=ListKeys,
    reply=Listed[KeyView],
    message="Keys",
    summary="List the subscription keys of partners and customers",
)

GET_KEY = Operation(
    name=f"{GATEWAY}.get_key",
    method=HTTPMethod.GET,
    path="/operator/keys/{subscription_key}",
    role=Role.VIEWER,
    command=GetKey,
    reply=KeyView,
    message="Key",
    summary="Get a subscription key",
)

CREATE_KEY = Operation(
    name=f"{GATEWAY}.create_key",
    method=HTTPMethod.POST,
    path="/operator/keys",
    role=Role.ADMIN,
    command=CreateKey,
    reply=KeySecret,
    errors=(NotFound,),
    message="Key created",
    summary="Make a subscription key; of a partner that is new, too",
)

ROTATE_KEY = Operation(
    name=f"{GATEWAY}.rotate_key",
    method=HTTPMethod.POST,
    path="/operator/keys/{subscription_key}/rotate",
    role=Role.ADMIN,
    command=RotateKey,
    reply=KeySecret,
    errors=(InvalidState,),
    message="Key rotated",
    summary="Give a key a new secret",
)

REVOKE_KEY = Operation(
    name=f"{GATEWAY}.revoke_key",
    method=HTTPMethod.POST,
    path="/operator/keys/{subscription_key}/revoke",
    role=Role.ADMIN,
    command=RevokeKey,
    reply=KeyView,
    message="Key revoked",
    summary="Stop a key; it is refused within two seconds",
)

CHANGE_SCOPES = Operation(
    name=f"{GATEWAY}.change_key_scopes",
    method=HTTPMethod.POST,
    path="/operator/keys/{subscription_key}/scopes",
    role=Role.ADMIN,
    command=ChangeScopes,
    reply=KeyView,
    errors=(InvalidState,),
    message="Scopes changed",
    summary="Change what a key may do; one scope stays",
)

CHANGE_NETWORKS = Operation(
    name=f"{GATEWAY}.change_key_networks",
    method=HTTPMethod.POST,
    path="/operator/keys/{subscription_key}/networks",
    role=Role.ADMIN,
    command=ChangeNetworks,
    reply=KeyView,
    errors=(InvalidState,),
    message="Networks changed",
    summary="Change where requests of a key may come from",
)

OPERATIONS = declared_in(globals(), Operation)
