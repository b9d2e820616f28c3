"""Ids."""

from __future__ import annotations

from uuid import uuid1, uuid4, uuid5

import pytest

from libs.contracts.errors import NotFound
from libs.contracts.ids import id_of, parse_id, parse_made_id
from tests.support.ids import made_id


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


def test_an_id_that_a_service_makes_is_told_from_those_of_others() -> None:
    of_a_command = made_id()
    of_a_name = uuid5(of_a_command, "customer")

    assert [parse_made_id(str(one)) for one in (of_a_command, of_a_name)] == [
        of_a_command,
        of_a_name,
    ]
    assert [parse_made_id(one) for one in (str(uuid4()), str(uuid1()), "acc_1")] == [None] * 3
