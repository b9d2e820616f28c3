"""The time within the id of a message."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from libs.messaging.message_ids import time_within


def test_a_uuid_of_version_7_tells_its_millisecond() -> None:
    made = datetime(2026, 11, 23, 6, 0, tzinfo=UTC)
    milliseconds = int(made.timestamp() * 1000)
    text = f"{milliseconds:012x}"

    assert time_within(f"{text[:8]}-{text[8:]}-7000-8000-000000000000") == made


@pytest.mark.parametrize(
    "message_id",
    [None, "", "evt_", "no-uuid", "ffffffff-ffff-7fff-bfff-ffffffffffff", "0" * 32],
    ids=["none", "empty", "no uuid within", "no uuid", "beyond the year 9999", "another version"],
)
def test_of_every_other_id_no_time_is_known(message_id: str | None) -> None:
    assert time_within(message_id) is None
