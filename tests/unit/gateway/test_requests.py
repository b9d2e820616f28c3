"""What of a request's headers is believed."""

from __future__ import annotations

import uuid
from typing import Any

from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from libs.contracts.payments_operations import SEND_WIRE
from libs.contracts.principal import Family, Principal
from services.gateway.requests import command_id_of, pending_without_key, request_id_of

PARTNER = Principal("tenant", "Tenant", Family.PARTNER, "sub_1")


def request(*headers: tuple[str, str], target: str = "/a", method: str = "POST") -> Any:
    return make_mocked_request(method, target, CIMultiDict(headers))


def test_a_request_id_is_kept_when_it_is_one_and_made_otherwise() -> None:
    assert request_id_of(request(("X-Request-Id", "a~!"))) == "a~!"
    for sent in ("", "a b", "é", "x" * 129, "a\tb"):
        assert uuid.UUID(request_id_of(request(("X-Request-Id", sent)))).version == 7


def test_a_key_names_one_command_of_tenant_customer_method_and_path_however_spelled() -> None:
    customer = Principal("tenant", "Tenant", Family.CUSTOMER, "sub_2", str(uuid.uuid4()))
    other_tenant = Principal("tenant2", "Tenant", Family.PARTNER, "sub_3")
    same = [
        command_id_of(PARTNER, request(target="/a"), "key"),
        command_id_of(PARTNER, request(target="/a?b=1"), "key"),
        command_id_of(PARTNER, request(target="/%61"), "key"),
        command_id_of(PARTNER, request(target="/A"), "key"),
        command_id_of(PARTNER, request(target="https://other.example/a"), "key"),
        command_id_of(
            Principal("tenant", "?", Family.PARTNER, "sub_9"), request(target="/a"), "key"
        ),
    ]
    others = [
        command_id_of(PARTNER, request(target="/a"), "key2"),
        command_id_of(PARTNER, request(target="/b"), "key"),
        command_id_of(PARTNER, request(target="/a", method="PATCH"), "key"),
        command_id_of(customer, request(target="/a"), "key"),
        command_id_of(other_tenant, request(target="/a"), "key"),
    ]

    assert len(set(same)) == 1
    assert same[0].version == 5
    assert len({same[0], *others}) == 6


def test_a_pending_wire_without_a_key_is_looked_up_by_its_id() -> None:
    detail = pending_without_key(SEND_WIRE)

    assert "do not send it again" in detail
    assert detail.endswith("what became of it by its `transaction_id`.")
