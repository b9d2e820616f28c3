"""Ids."""

from __future__ import annotations

from uuid import uuid4

import pytest

from libs.contracts.ids import parse_id
from services.onboarding.ids import derived, saga_id_of


@pytest.mark.parametrize(
    "text",
    ["", "acc_1", "{12345678-1234-5678-1234-567812345678}", "12345678123456781234567812345678"],
)
def test_only_a_uuid_in_full_is_an_id(text: str) -> None:
    assert parse_id(text) is None


def test_letters_of_an_id_may_be_upper_case() -> None:
    known = uuid4()

    assert parse_id(str(known).upper()) == known


def test_a_second_request_under_an_idempotency_key_is_another_saga() -> None:
    command_id = uuid4()

    first, again = saga_id_of(command_id, "m1"), saga_id_of(command_id, "m1")

    assert first == again
    assert first != saga_id_of(command_id, "m2")
    assert derived(first, "customer") != derived(first, "external_account")
