"""What a service must have to answer queries."""

from __future__ import annotations

import pytest

from libs.contracts.ledger_read_operations import GET_BALANCE
from libs.contracts.table import operations_of
from libs.handling.queries import check_handlers


def test_a_service_without_a_handler_for_a_row_does_not_start() -> None:
    names = [row.name for row in operations_of("ledger_read") if row.is_query]

    check_handlers("ledger_read", names, queries=True)
    with pytest.raises(RuntimeError, match=GET_BALANCE.name):
        check_handlers("ledger_read", set(names) - {GET_BALANCE.name}, queries=True)
