"""Entries of a feed, and how the one at fault is described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from libs.providers.feed_entries import Place, UndecodableEntry, decode_entries
from libs.providers.sandbox.feed_pages import locate


@dataclass(frozen=True)
class Read:
    position: int


def read(item: dict[str, Any], _: Place) -> Read:
    if item.get("name") != "good":
        raise ValueError(f"what is this: {item}")
    return Read(item["position"])


def test_entries_are_decoded_up_to_the_first_that_cannot_be() -> None:
    items = [{"position": n, "name": "bad" if n == 7 else "good"} for n in (5, 6, 7, 8)]

    decoded = decode_entries(items, 4, read, locate)

    assert [entry.position for entry in decoded] == [5, 6]


@pytest.mark.parametrize(
    ("item", "position", "kind"),
    [
        ({"position": 9, "type": "wire.sent", "name": "Ada"}, 9, "wire.sent"),
        ({"position": "9", "type": 3}, 5, None),
        ({"position": 4, "type": "old"}, 5, "old"),
        ({"position": True}, 5, None),
        ([1], 5, None),
        (None, 5, None),
    ],
)
def test_an_entry_at_fault_has_its_position_and_type_and_none_of_its_values(
    item: Any, position: int, kind: str | None
) -> None:
    with pytest.raises(UndecodableEntry) as raised:
        decode_entries([item, {"position": 10, "name": "good"}], 4, read, locate)

    faulty = raised.value.entry
    assert (faulty.position, faulty.type) == (position, kind)
    assert "Ada" not in faulty.problem + str(faulty.outline)
    assert faulty.problem.startswith("it cannot be decoded")


def test_an_entry_without_a_position_of_its_own_has_the_place_that_its_feed_gives_it() -> None:
    def count(item: Any, after: int) -> Place:
        return Place(after + 1, "named", f"after {item['id']}", item["id"])

    def read_place(item: dict[str, Any], place: Place) -> Place:
        if item["id"] == "e9":
            raise ValueError
        return place

    decoded = decode_entries([{"id": "e7"}, {"id": "e8"}], 40, read_place, count)
    with pytest.raises(UndecodableEntry) as raised:
        decode_entries([{"id": "e9"}], 42, read_place, count)

    assert [(one.position, one.provider_cursor, one.event_id) for one in decoded] == [
        (41, "after e7", "e7"),
        (42, "after e8", "e8"),
    ]
    faulty = raised.value.entry
    assert (faulty.position, faulty.provider_cursor, faulty.event_id) == (43, "after e9", "e9")
