"""Ids."""

from __future__ import annotations

from uuid import uuid4

import pytest

from libs.contracts.errors import NotFound
from libs.contracts.ids import id_of, parse_id


@pytest.mark.parametrize(
    "text",
    ["", "acc_1", "{12345678-1234-5678-1234-567812345678}", "12345678123456781234567812345678"],
)
def test_only_a_uuid_in_full_is_an_id(text: str) -> None:
    assert parse_id(text) is None
    with pytest.raises(NotFound):
        id_of(text)


def test_letters_of_an_id_may_be_upper_case() -> None:
    known = uuid4()

    assert parse_id(str(known).upper()) == known
    assert id_of(str(known).upper()) == known
