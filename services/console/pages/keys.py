"""Subscription keys of partners and customers."""

from datetime import UTC, datetime
from typing import Any

from libs.contracts.operating import keys as o
from libs.contracts.operating import resealing
from services.console.declarations import Action, DetailPage, ListPage, Subject

SECRET = ("subscription_key", "secret", "tenant", "family")


def _is_revocable(key: Any) -> bool:
    return key.revoked_at is None


def _is_active(key: Any) -> bool:
    has_expired = key.expires_at is not None and key.expires_at <= datetime.now(UTC)
    return key.revoked_at is None and not has_expired


CREATE = Action(
    title="Create key",
    path="/keys/create",
    operation=o.CREATE_KEY,
    effect="Makes a key of a partner, named by its tenant, or of one customer. It works at once; its secret is shown"
    " once. By default a key that is made in production requires an Idempotency-Key of each write.",
    done="The key is created.",
    shown=SECRET,
    lost="Without the answer the secret of a new key is lost: if the list has the key, revoke it and create another.",
)
ROTATE = Action(
    title="Rotate",
    path="/keys/{subscription_key}/rotate",
    operation=o.ROTATE_KEY,
    effect="Gives the key a new secret, which is shown once. The one before stays valid for the overlap."
    " A key has two secrets at most: a second rotation within the overlap ends the first secret at once."
    " `Previous secret expires` says until when that is.",
    done="The key has a new secret.",
    when=_is_active,
    shown=SECRET,
    lost="Without the answer a new secret is lost: the audit says whether the key has one. Do not rotate it again while"
    " programs sign with the secret before, which would end at once: create another key for them.",
)
SCOPES = Action(
    title="Change scopes",
    path="/keys/{subscription_key}/scopes",
    operation=o.CHANGE_SCOPES,
    effect="Changes what the key may do, within two seconds in every gateway process.",
    done="The scopes are changed.",
    when=_is_active,
)
NETWORKS = Action(
    title="Change networks",
    path="/keys/{subscription_key}/networks",
    operation=o.CHANGE_NETWORKS,
    effect="Changes where requests of the key may come from, such as 203.0.113.0/24. `Anywhere`, which stands"
    " alone, ends all limits.",
    done="The networks are changed.",
    when=_is_active,
)
REVOKE = Action(
    title="Revoke",
    path="/keys/{subscription_key}/revoke",
    operation=o.REVOKE_KEY,
    effect="Ends the key, for good: within two seconds its requests are refused.",
    done="The key is revoked.",
    when=_is_revocable,
    danger=True,
)
RESEAL = Action(
    title="Reseal",
    path="/keys/reseal",
    operation=resealing.RESEAL,
    effect="Seals what a service has stored with the first keys of its key rings, so that older storage keys can be"
    " taken out of its settings. Rows that are sealed so already stay as they are.",
    done="Everything was walked over. `bankside keys reseal` says which keys nothing needs any more; walk again where"
    " rows were passed over.",
    hidden=("after",),
    unfinished="This step is done, and more is left: go on with the next one.",
    progress=("part", "rows", "passed_over", "unopened", "keys", "rings"),
)

LIST = ListPage(
    path="/keys",
    title="Keys",
    about="Subscription keys of partners and customers, revoked and expired ones included.",
    operation=o.LIST_KEYS,
    columns=(
        "subscription_key",
        "family",
        "tenant",
        "customer_id",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    ),
    one="/keys/{subscription_key}",
    make=(CREATE, RESEAL),
)
DETAIL = DetailPage(
    path="/keys/{subscription_key}",
    title="Key",
    operation=o.GET_KEY,
    name="subscription_key",
    parent=LIST,
    actions=(ROTATE, SCOPES, NETWORKS, REVOKE),
)

SUBJECT = Subject(LIST, (DETAIL,))
