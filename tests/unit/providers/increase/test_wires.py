"""Wires are read by the fields that are used; the others may have any value."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from structlog.testing import capture_logs

from libs.contracts.errors import ProviderError
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.wires import Wire, retrieve_wire
from tests.unit.providers.conftest import Provider, soon
from tests.unit.providers.increase.conftest import shows, wire_transfer

REVERSAL = {
    "created_at": "2026-03-02T15:40:00Z",
    "description": "Inbound wire reversal",
    "input_cycle_date": "-4712-01-01",
}


async def read(client: IncreaseClient) -> Wire:
    return await client.read("get_wire", lambda sdk: retrieve_wire(sdk, "w_1"), deadline=soon())


@pytest.mark.parametrize(
    "changed",
    [
        {"reversal": REVERSAL},
        {"currency": "EUR", "network": "of_a_later_release"},
        {"created_by": {"category": "of_a_later_release"}},
        {"submission": "not an object", "status": "of_a_later_release"},
    ],
)
async def test_a_value_that_is_not_used_keeps_no_wire_from_being_read(
    provider: Provider, increase: IncreaseClient, changed: dict[str, Any]
) -> None:
    key = uuid4()
    provider.answers = [shows(wire_transfer(key) | changed)]

    wire = await read(increase)

    assert (wire.id, wire.amount, wire.idempotency_key) == ("wire_transfer_1", 1050, str(key))


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"id": None}, "$.id"),
        ({"amount": "a value of a customer"}, "$.amount"),
        ({"created_at": "-4712-01-01"}, "$.created_at"),
        ({"reversal": {"description": "Inbound wire reversal"}}, "$.reversal"),
    ],
)
async def test_a_wire_without_a_value_that_is_used_is_not_read_and_the_log_says_where(
    provider: Provider, increase: IncreaseClient, changed: dict[str, Any], where: str
) -> None:
    provider.answers = [shows(wire_transfer(UUID(int=1)) | changed)]

    with capture_logs() as logs, pytest.raises(ProviderError):
        await read(increase)

    [shape] = [log for log in logs if log["event"] == "answer_has_another_shape"]
    assert where in shape["problem"]
    assert "a value of a customer" not in repr(logs)
