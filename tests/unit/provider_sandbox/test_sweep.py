from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.program_banks import COUNT, FIRST_ID, program_bank
from services.provider_sandbox.sweep import spread

LIMIT = Decimal(250_000)


@given(
    account_id=st.text(max_size=20),
    amount=st.decimals(min_value=0, max_value=LIMIT * COUNT, places=2),
)
def test_a_spread_adds_up_to_the_cent_and_no_bank_gets_more_than_its_limit(
    account_id: str, amount: Decimal
) -> None:
    balances = spread(account_id, amount, LIMIT)

    assert sum(balances.values()) == amount
    assert all(0 < balance <= LIMIT for balance in balances.values())
    assert all(FIRST_ID <= location_id < FIRST_ID + COUNT for location_id in balances)


def test_more_than_the_programme_holds_is_refused() -> None:
    with pytest.raises(Refusal, match="program_full"):
        spread("acc_1", LIMIT * COUNT + Decimal("0.01"), LIMIT)


def test_no_two_program_banks_are_alike() -> None:
    banks = [program_bank(FIRST_ID + index) for index in range(COUNT)]

    assert len({(bank.name, bank.state) for bank in banks}) == COUNT
    assert all(bank.city in bank.name and len(bank.state) == 2 for bank in banks)
