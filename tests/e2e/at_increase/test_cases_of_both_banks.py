"""Cases of the other folders, at the fake of Increase in every run; `BANK=increase-fake` has all of them there."""

from __future__ import annotations

from tests.e2e.ledger.test_ach import test_an_ach_request_lives_through_its_states
from tests.e2e.ledger.test_statements import test_a_statement_is_shown_in_its_read_shape
from tests.e2e.ledger.test_transactions import (
    test_pages_go_from_the_newest_to_the_end_and_are_empty_beyond,
)
from tests.e2e.test_external_accounts import test_a_new_one_is_primary_and_the_old_one_stays
from tests.e2e.test_onboarding import test_an_approved_business_has_its_account_at_once
from tests.e2e.test_reading import test_the_balance_is_the_sum_of_the_deposits_to_the_cent
from tests.e2e.test_updates import test_an_update_merges_at_every_level
from tests.e2e.wires.test_life import (
    test_a_wire_is_completed_by_itself_and_is_a_debit_of_the_account,
)
from tests.e2e.wires.test_once import test_one_key_from_fifty_clients_is_one_wire
from tests.support.live import Live
from tests.support.reconciling import assert_reconciled

__all__ = [
    "test_a_new_one_is_primary_and_the_old_one_stays",
    "test_a_statement_is_shown_in_its_read_shape",
    "test_a_wire_is_completed_by_itself_and_is_a_debit_of_the_account",
    "test_an_ach_request_lives_through_its_states",
    "test_an_approved_business_has_its_account_at_once",
    "test_an_update_merges_at_every_level",
    "test_one_key_from_fifty_clients_is_one_wire",
    "test_pages_go_from_the_newest_to_the_end_and_are_empty_beyond",
    "test_the_balance_is_the_sum_of_the_deposits_to_the_cent",
]


async def test_both_sides_agree_on_all_that_the_cases_did(live: Live) -> None:
    await assert_reconciled(live.stack)
