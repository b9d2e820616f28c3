from __future__ import annotations

from libs.contracts.reconciliation import AnsweredCommand
from services.reconciliation.handlers.stored_answers import StoredAnswerComparison, judge
from services.reconciliation.models import EVIDENCE_GONE
from services.reconciliation.ports import CoreAccount, CoreExternalAccount
from tests.unit.reconciliation.fakes import FakeList, FakeOnboarding, soon
from tests.unit.reconciliation.records import our_customer, our_external_account

ANSWER = AnsweredCommand(
    command_id="cmd_1",
    operation="onboarding.onboard_customer",
    customer_id="c_1",
    account_id="acc_1",
    external_account_id="ext_1",
)
THERE = {"acc_1", "ext_1"}


def test_ids_that_were_told_and_exist_on_both_sides_are_no_difference() -> None:
    assert judge(ANSWER, our_customer(), our_external_account(), THERE) == []


def test_an_id_that_either_side_lacks_contradicts_what_was_told() -> None:
    moved = our_external_account(customer_id="c_2")

    ours = [judge(ANSWER, our_customer(), held, THERE) for held in (None, moved)]
    theirs = judge(ANSWER, our_customer(), our_external_account(), {"ext_1"})

    for [one] in ours:
        assert (one.kind, one.subject) == ("told_external_account", "ext_1")
    assert [(one.kind, one.subject) for one in theirs] == [("told_account", "acc_1")]


def test_what_was_told_of_a_customer_of_ours_names_its_tenant() -> None:
    (known,) = judge(ANSWER, our_customer(), our_external_account(), {"ext_1"})
    gone = judge(ANSWER, None, None, THERE)

    assert known.ids["tenant"] == "t_1"
    assert all("tenant" not in one.ids for one in gone)


def test_a_customer_that_was_told_and_is_gone_is_a_difference() -> None:
    pending = ANSWER.model_copy(update={"account_id": None, "external_account_id": None})

    assert [one.kind for one in judge(pending, None, None, set())] == ["told_customer"]
    assert {one.kind for one in judge(ANSWER, None, None, THERE)} == {
        "told_account",
        "told_external_account",
    }


async def test_an_answer_that_is_not_stored_any_more_neither_confirms_nor_refutes() -> None:
    accounts: FakeList[CoreAccount] = FakeList([], "account_id")
    external_accounts: FakeList[CoreExternalAccount] = FakeList([], "external_account_id")
    comparison = StoredAnswerComparison(FakeOnboarding(told=[ANSWER]), accounts, external_accounts)

    found = await comparison.look(["cmd_1", "cmd_2"], soon())

    assert isinstance(found["cmd_1"], list)
    assert found["cmd_2"] is EVIDENCE_GONE
