"""`python -m deploy.local rabbitmqctl …` hands its arguments on as they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from deploy.local import __main__ as local


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-p", "bankside", "delete_queue", "books.events"),
        ("delete_queue", "-p", "bankside", "--", "books.events"),
        ("--help",),
    ],
    ids=" ".join,
)
def test_all_arguments_are_those_of_rabbitmqctl(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_on: list[str] = []

    def control_broker(_: object, given: Sequence[str]) -> int:
        handed_on.extend(given)
        return 3

    monkeypatch.setattr(local, "control_broker", control_broker)
    monkeypatch.setattr(sys, "argv", ["deploy.local", "rabbitmqctl", *arguments])

    status = local.main()

    assert (status, handed_on) == (3, list(arguments))
