"""What a service must have, and have loaded, before it is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from libs.contracts.ledger_read_operations import GET_BALANCE
from libs.contracts.table import operations_of
from libs.handling.payloads import prepare


def test_a_service_without_a_handler_for_a_row_does_not_start() -> None:
    names = [row.name for row in operations_of("ledger_read") if row.is_query]

    prepare("ledger_read", names, queries=True)
    with pytest.raises(RuntimeError, match=GET_BALANCE.name):
        prepare("ledger_read", set(names) - {GET_BALANCE.name}, queries=True)


LOADED = """
import sys
from libs.contracts.table import operations_of
from libs.handling.payloads import prepare

for service in sys.argv[1:]:
    names = [row.name for row in operations_of(service)]
    before = "phonenumbers" in sys.modules
    prepare(service, names, queries=False)
    late = [
        row.command.__name__
        for row in operations_of(service)
        if not row.is_query and not row.command.__pydantic_complete__
    ]
    print(service, before, "phonenumbers" in sys.modules, late)
"""


def test_what_validates_commands_is_there_before_the_first_one_where_they_need_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "payments", "onboarding"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == ["payments False False []", "onboarding False True []"]
