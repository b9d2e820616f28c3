"""An event's body."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from libs.contracts.events import EVENT_TYPES, new_event
from libs.contracts.wires import WireEventData
from libs.specs.example_events import event_example

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "at", [NOON, NOON.astimezone(timezone(timedelta(hours=-5))), NOON.replace(tzinfo=None)]
)
def test_the_timestamp_is_in_utc_with_microseconds_whatever_the_bank_told(at: datetime) -> None:
    kind = EVENT_TYPES["wire.submitted"]
    data = WireEventData.model_validate(event_example(kind)["data"], strict=False)

    made = new_event(kind, data, tenant="t", customer_id="c", resource_id="r", sequence=1, at=at)

    assert json.loads(made.body)["timestamp"] == "2026-01-31T12:00:00.000000Z"
