"""Services of two releases side by side: what one does not know it ignores, unless it was told not to."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec
import pytest
from aiormq import spec

from libs.contracts.customers import UpdateBusiness
from libs.contracts.events import Event
from libs.contracts.exact_json import encode
from libs.contracts.onboarding_operations import (
    FIND_CUSTOMER,
    FIND_EXTERNAL_ACCOUNT,
    UPDATE_BUSINESS,
    UPDATE_PERSON,
)
from libs.contracts.ownership import (
    CustomerOwner,
    ExternalAccountOwner,
    FindCustomer,
    FindExternalAccount,
)
from libs.contracts.principal import Family, Principal
from libs.handling.payloads import open_body
from libs.handling.query_client import QueryClient
from libs.messaging.envelope import (
    VERSION,
    Envelope,
    NewerEnvelope,
    NotAnEnvelope,
    Reply,
    decode_command,
    decode_queries,
    decode_replies,
    decode_reply,
    raw,
)
from libs.messaging.event_message import ForgedEvent, NewerEvent, NotAnEvent, decode_event

PRINCIPAL = Principal("tenant", "Tenant", Family.PARTNER, "sub_test")
ENVELOPE = Envelope(
    id=str(uuid.uuid4()),
    message_id="m1",
    request_id="r1",
    operation=UPDATE_PERSON.name,
    principal=PRINCIPAL,
    deadline=time.time(),
    body=raw({"person_id": "p1"}),
)


OWNER = CustomerOwner(customer_id="c", tenant="t", business_name="Acme", dba=None)


def as_object(value: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = msgspec.json.decode(encode(value))
    return decoded


def newer_envelope(**changes: Any) -> dict[str, Any]:
    """An envelope as a later release sends it: one more field in it, and one in its principal."""
    sent = as_object(ENVELOPE)
    principal = sent["principal"] | {"branch": "b1"}
    return sent | {"priority": 3, "principal": principal} | changes


def test_a_field_more_in_an_envelope_and_in_its_principal_is_ignored() -> None:
    command = decode_command(encode(newer_envelope()))
    (query,) = decode_queries(encode([newer_envelope()]))

    assert command == query == ENVELOPE


def test_an_envelope_of_the_release_before_is_understood() -> None:
    sent = as_object(ENVELOPE)
    assert "version" not in sent

    assert decode_command(encode(sent)).version == 1


def test_what_an_older_service_reads_is_all_that_a_newer_one_needs_not_to_send() -> None:
    """The other direction: a field that has a default here need not be sent by an older release."""
    sent = as_object(ENVELOPE)
    for name in ("body_hash", "version"):
        sent.pop(name, None)

    assert decode_command(encode(sent)) == ENVELOPE


@pytest.mark.parametrize("changes", [{}, {"deadline": "tomorrow"}, {"principal": None}])
def test_an_envelope_of_a_later_version_is_told_from_one_that_cannot_be_read(
    changes: dict[str, Any],
) -> None:
    newer = newer_envelope(version=VERSION + 1, **changes)

    with pytest.raises(NewerEnvelope) as command:
        decode_command(encode(newer))
    with pytest.raises(NewerEnvelope) as queries:
        decode_queries(encode([newer, newer]))

    assert [head.message_id for head in command.value.heads] == ["m1"]
    assert [head.id for head in queries.value.heads] == [ENVELOPE.id] * 2


def test_an_envelope_of_our_version_that_cannot_be_read_is_no_newer_one() -> None:
    with pytest.raises(NotAnEnvelope) as raised:
        decode_command(encode(newer_envelope(deadline="tomorrow")))

    assert not isinstance(raised.value, NewerEnvelope)


def test_a_field_more_in_a_reply_and_in_its_error_is_ignored() -> None:
    reply = as_object(Reply(id="c", to="m", result=raw({"data": 1}))) | {"served_by": "node-3"}
    refusal = {"id": "c", "to": "m", "error": {"code": "not_found", "hint": "none"}}

    (read, refused) = decode_replies(encode([reply, refusal]))
    stored = decode_reply(encode(reply))

    assert bytes(read.result) == bytes(stored.result) == b'{"data":1}'
    assert refused.error is not None
    assert refused.error.code == "not_found"


class NoSealer:
    def seal(self, plaintext: str, context: str) -> str:
        return plaintext

    def open(self, token: str, context: str) -> str:
        return token


def test_a_field_more_in_a_stored_command_is_ignored_at_any_depth() -> None:
    body = {"customer_id": "c1", "business": {"dba": "Acme", "motto": "More"}, "nickname": "A"}

    command = open_body(UPDATE_BUSINESS, ENVELOPE.id, encode(body), NoSealer())

    assert isinstance(command, UpdateBusiness)
    assert command.model_dump(exclude_unset=True) == {
        "customer_id": "c1",
        "business": {"dba": "Acme"},
    }


async def test_a_field_more_in_what_another_service_replies_is_ignored() -> None:
    class Newer:
        async def query(self, *_: object) -> Any:
            return {"data": OWNER.model_dump() | {"since": "2030"}}

    query_client = QueryClient(Newer(), patience_seconds=1)

    owner = await query_client.query(
        FIND_CUSTOMER, PRINCIPAL, FindCustomer(customer_id="c"), CustomerOwner, time.time() + 1
    )

    assert owner == OWNER


async def test_text_that_callers_may_not_send_any_more_is_read_where_another_service_has_it() -> (
    None
):
    old = {"street_1": "1 Main\u202e St", "city": "\u200b", "state": "NY", "zip_code": "12207"}
    body = {"customer_id": "c1", "business": {"dba": "\u200b", "business_address": old}}
    reply = {
        "external_account_id": "e",
        "customer_id": "c",
        "name_on_account": "Acme\u202e LLC",
        "address_on_account": old,
        "linked_at": "2026-11-01T12:00:00.000000Z",
    }

    class Earlier:
        async def query(self, *_: object) -> Any:
            return {"data": reply}

    command = open_body(UPDATE_BUSINESS, ENVELOPE.id, encode(body), NoSealer())
    owner = await QueryClient(Earlier(), patience_seconds=1).query(
        FIND_EXTERNAL_ACCOUNT,
        PRINCIPAL,
        FindExternalAccount(external_account_id="e"),
        ExternalAccountOwner,
        time.time() + 1,
    )

    assert command.model_dump(exclude_unset=True) == body
    assert owner.model_dump(exclude_unset=True) == reply


def delivered_event(
    *, sender: str | None = "onboarding", event_type: str = "person.updated", **headers: Any
) -> Event:
    known: dict[str, Any] = {"tenant": "t", "customer_id": "c", "resource_id": "r", "sequence": 1}
    properties = spec.Basic.Properties(
        message_id="evt_1",
        message_type=event_type,
        user_id=sender,
        headers=known | headers,
    )
    return decode_event(properties, b"{}")


def test_a_header_more_of_an_event_is_ignored() -> None:
    assert delivered_event(region="eu") == delivered_event()
    assert delivered_event(version=VERSION).event_id == "evt_1"


def test_an_event_of_a_later_version_is_told_from_one_that_cannot_be_read() -> None:
    with pytest.raises(NewerEvent):
        delivered_event(version=VERSION + 1)
    with pytest.raises(NotAnEvent, match="sequence"):
        delivered_event(sequence="one")


@pytest.mark.parametrize(
    ("sender", "event_type"),
    [
        (None, "person.updated"),
        ("ledger_read", "person.updated"),
        ("gateway", "of a later release"),
        ("payments", "person.updated"),
    ],
)
def test_an_event_of_another_sender_is_forged_although_it_says_that_it_is_of_a_later_version(
    sender: str | None, event_type: str
) -> None:
    with pytest.raises(ForgedEvent):
        delivered_event(sender=sender, event_type=event_type, version=VERSION + 1)


@pytest.mark.parametrize("event_type", ["of a later release", "card.created"])
def test_a_type_that_only_a_later_version_understands_is_not_forged(event_type: str) -> None:
    with pytest.raises(NewerEvent):
        delivered_event(event_type=event_type, version=VERSION + 1)


def test_an_event_of_a_kind_that_no_service_emits_is_forged() -> None:
    with pytest.raises(ForgedEvent):
        delivered_event(event_type="card.created")
