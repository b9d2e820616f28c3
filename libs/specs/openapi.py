"""The interface as an OpenAPI 3.1 document, and that of operators as another one, read off the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from libs.contracts.events import API_VERSION, EVENT_TYPES, EventType
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.operation import Operation, Resource
from libs.contracts.table import PUBLIC_OPERATIONS
from libs.specs import problems, security
from libs.specs.event_schemas import event_name, event_schema
from libs.specs.example_events import event_example
from libs.specs.operations import (
    HEADERS,
    PARAMETERS,
    body_schema,
    envelope_name,
    envelope_schema,
    operation_object,
    tag_of,
)
from libs.specs.schemas import Schema, key_of, ref, schemas_of, used_by

DESCRIPTION = """\
Banking as a service for business customers: onboarding, accounts, balances, statements, transactions, deposit
locations, settlement, ACH, wires, webhooks.

**Families.** A key belongs to a partner, which sees every customer that it onboarded (`/partner/reseller/…`), or to one
customer (`/customer/…`). It has scopes; `x-scope` is the one that an operation needs. Operations with `x-extension` are
beyond the numbered endpoints of the interface.

**Signing.** Every request is signed, by four headers (see the security schemes). The signature is the lower-case hex
HMAC-SHA256, keyed with the secret, of seven parts joined by newlines: `v1`, the timestamp, the nonce and the
subscription key as sent, the method in upper case, the request target exactly as sent (path and query), and the
lower-case hex SHA-256 of the raw body (of nothing when there is none).

**Answers.** Success is 200 with an envelope of `message` and `data`. Failed validation is 422 with `detail`, a list of
all that is wrong; every other error is `application/problem+json` with a `code`, by which programs decide.

**Text.** White space around text is cut off. Beyond its pattern a text that is not empty has at least one character
that is visible (neither white space nor of Unicode's category Cf), and none that changes the direction of text (U+202A
to U+202E, U+2066 to U+2069).

**Retrying.** Send a POST, PUT, PATCH or DELETE with an `Idempotency-Key`. A retry signs anew and keeps the key; it
returns the first answer.

**Webhooks.** Each event is posted to the callback URLs of the subscriptions that ask for its type, at least once and in
no promised order, and can be listed under `events`. Deliveries are signed as in Standard Webhooks, with the secret of
the subscription, and answered with any 2xx.

**Money.** Amounts are US dollars. Read and write the numbers as decimals: through binary floating point they are no
longer exact.

| where | JSON | why |
|---|---|---|
| wires, policies, transactions, deposit locations, interest | a number, `1250.75`, of at most two decimals | exact |
| balances | an object, `{"amount": 23749.25, "currency": "USD"}` | it has a currency |
| ACH requests | a string, `"1250.75"` | the interface defines it as a string |
| settlement calculations | a string, `"-1250.75"` | as for ACH requests; it has a sign |
"""

OPERATOR_DESCRIPTION = """\
What operators may see and do, on a listener of its own. Requests are signed as those of all other callers; a key
belongs to an operator, who has a role: viewers read, operators act, admins also manage keys and operators.

**Writes.** Each has a `reason` and is recorded in the audit under the operator's name. There is no Idempotency-Key:
504 `outcome_pending` says that a write may have been done; look before you repeat it.

**Lists.** `after` is the `next` of the page before. A list over several services names in `unreachable` those that did
not answer, whose rows it lacks.
"""

TAGS: dict[Resource, str] = {
    Resource.CUSTOMERS: "Businesses with their persons and external bank accounts: onboarding, updates, status",
    Resource.ACCOUNTS: "Accounts, their balances, and the external accounts that are linked to them",
    Resource.LEDGER: "An account's transactions, ACH requests, statements, deposit locations, settlement calculations",
    Resource.WIRES: "Wires from an account to a linked external account, and their approval",
    Resource.POLICIES: "The limits of a customer's wires, and which of them wait for approval",
    Resource.WEBHOOKS: "Subscriptions of callback URLs to events, their secrets and deliveries",
    Resource.EVENTS: "Events as they are listed, and as they are posted to callback URLs",
}

DELIVERY_HEADERS = {
    "webhook-id": "The event's id, the same at every attempt",
    "webhook-timestamp": "Unix time of the attempt in whole seconds",
    "webhook-signature": "`v1,` and the base64 HMAC-SHA256 of id, timestamp and body joined by dots; one for each "
    "secret that is active, separated by spaces. The HMAC's key is the secret without `whsec_`, decoded from base64",
}


def openapi_document() -> dict[str, Any]:
    """The whole document of partners and customers, as plain JSON values."""
    tags = [{"name": str(tag), "description": text} for tag, text in TAGS.items()]
    events = [*EVENT_TYPES.values()]
    return _document("Bankside", DESCRIPTION, PUBLIC_OPERATIONS, tags, events)


def operator_document() -> dict[str, Any]:
    """The whole document of operators, as plain JSON values."""
    rows = OPERATOR_OPERATIONS
    tags = [{"name": tag} for tag in dict.fromkeys(tag_of(row) for row in rows)]
    return _document("Bankside, for operators", OPERATOR_DESCRIPTION, rows, tags, ())


def _document(
    title: str,
    description: str,
    rows: Sequence[Operation],
    tags: list[Schema],
    events: Sequence[EventType],
) -> dict[str, Any]:
    schemas, definitions = schemas_of(
        [(row.command, "request") for row in rows]
        + [(row.reply, "reply") for row in rows]
        + [(row.pagination, "reply") for row in rows if row.pagination]
        + [(event.data, "reply") for event in events]
    )
    paths: dict[str, dict[str, Schema]] = {}
    components = definitions | problems.components_of(rows)
    made: dict[str, Schema] = {}
    for row in rows:
        command = definitions[row.command.__name__]
        if row.takes_body:
            made[row.command.__name__] = body_schema(row, command)
        data = schemas[key_of(row.reply), "reply"]
        page = schemas[key_of(row.pagination), "reply"] if row.pagination else None
        envelope = envelope_schema(row, data, page)
        if made.setdefault(envelope_name(row), envelope) != envelope:
            raise RuntimeError(f"two envelopes are named {envelope_name(row)}")
        paths.setdefault(row.path or "", {})[str(row.method).lower()] = operation_object(
            row, command, envelope_name(row), rows
        )
    for event in events:
        made[event_name(event)] = event_schema(event, schemas[key_of(event.data), "reply"])
    webhooks = {event.name: {"post": _webhook(event)} for event in events}
    responses = problems.share_responses(
        [operation for path in paths.values() for operation in path.values()]
    )
    takes_keys = any(row.takes_idempotency_key for row in rows)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": API_VERSION,
            "description": description,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": security.REQUIREMENT,
        "tags": tags,
        "paths": paths,
        **({"webhooks": webhooks} if webhooks else {}),
        "components": {
            "schemas": used_by([paths, webhooks, responses], components | made),
            "responses": responses,
            "headers": HEADERS,
            **({"parameters": PARAMETERS} if takes_keys else {}),
            "securitySchemes": security.SCHEMES,
        },
    }


def _webhook(event: EventType) -> Schema:
    content: Schema = {"schema": ref(event_name(event)), "example": event_example(event)}
    return {
        "operationId": f"receive{event_name(event)}",
        "tags": [str(Resource.EVENTS)],
        "summary": f"The event {event.name}",
        "description": event.description,
        "security": [],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
            for name, description in DELIVERY_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "2XX": {"description": "Received. Anything else is tried again later."},
            "410": {"description": "Nothing more is wanted: the subscription becomes unavailable."},
        },
    }
