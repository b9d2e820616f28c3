"""Answers that onboarding gave and stores: the ids in them exist, in onboarding and at core banking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from libs.contracts.reconciliation import (
    AnsweredCommand,
    RecordedCustomer,
    RecordedExternalAccount,
)
from services.reconciliation.handlers.comparison import Scan, suspects
from services.reconciliation.handlers.customer_ids import ids_of
from services.reconciliation.models import EVIDENCE_GONE, Difference, Finding, Scanned
from services.reconciliation.ports import (
    CoreAccount,
    CoreExternalAccount,
    Onboarding,
    ProviderList,
)


class StoredAnswerComparison:
    """Keys are command ids. Answers to senders of wires are compared with the wires."""

    name = "told"
    starts_anew = frozenset[str]()

    def __init__(
        self,
        onboarding: Onboarding,
        accounts: ProviderList[CoreAccount],
        external_accounts: ProviderList[CoreExternalAccount],
    ) -> None:
        self._onboarding = onboarding
        self._accounts = accounts
        self._external_accounts = external_accounts

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"answers": self._answers}

    async def _answers(self, after: str | None, deadline: float) -> Scanned:
        page = await self._onboarding.page_of_answers(after, deadline)
        findings = await self._judge_all(page.rows, deadline)
        return Scanned(len(page.rows), suspects(findings), page.next_after)

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        answers = await self._onboarding.answers(keys, deadline)
        found = await self._judge_all(list(answers.values()), deadline)
        # Each key was that of a stored answer. An answer that is missing now was deleted at the end of its retention.
        return {key: found.get(key, EVIDENCE_GONE) for key in keys}

    async def _judge_all(
        self, answers: Sequence[AnsweredCommand], deadline: float
    ) -> Mapping[str, Finding]:
        customers = await self._onboarding.customers([a.customer_id for a in answers], deadline)
        accounts = await self._accounts.by_ids(
            [a.account_id for a in answers if a.account_id], deadline
        )
        linked = [a.external_account_id for a in answers if a.external_account_id]
        held = await self._onboarding.external_accounts(linked, deadline)
        external = await self._external_accounts.by_ids(linked, deadline)
        there = {account.account_id for account in accounts} | {
            account.external_account_id for account in external
        }
        return {
            answer.command_id: judge(
                answer,
                customers.get(answer.customer_id),
                held.get(answer.external_account_id or ""),
                there,
            )
            for answer in answers
        }


def judge(
    answer: AnsweredCommand,
    customer: RecordedCustomer | None,
    external_account: RecordedExternalAccount | None,
    there: set[str],
) -> list[Difference]:
    """What a stored answer names and either side lacks.

    Args:
        customer, external_account: those that it names, as onboarding has them now.
        there: ids of accounts and external accounts that core banking has.
    """
    here = set()
    if customer is not None:
        here = {account.account_id for account in customer.accounts}
        if external_account is not None and external_account.customer_id == customer.customer_id:
            here.add(external_account.external_account_id)
    named = {"account_id": answer.account_id, "external_account_id": answer.external_account_id}
    missing = [
        (name, one) for name, one in named.items() if one and not (one in here and one in there)
    ]
    ids = {"command_id": answer.command_id, **ids_of(answer.customer_id, customer)}
    if customer is None and not missing:
        return [Difference("told_customer", answer.customer_id, ids, None, None)]
    return [
        Difference(
            f"told_{name.removesuffix('_id')}",
            one,
            ids | {name: one},
            {"told": one, "known": one in here},
            {"known": one in there},
        )
        for name, one in missing
    ]
