"""The books of onboarding and payments: queries over the broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TypeVar

from libs.contracts import onboarding_operations as onboarding
from libs.contracts import payments_operations as payments
from libs.contracts import reconciliation as r
from libs.contracts.model import Command, Model
from libs.contracts.operation import Operation
from libs.contracts.principal import SERVICE
from libs.handling.query_client import QueryClient
from services.reconciliation.adapters.chunks import chunks
from services.reconciliation.ports import Page

ModelT = TypeVar("ModelT", bound=Model)


class _Queries:
    def __init__(self, query_client: QueryClient, page_size: int = r.LARGEST_PAGE) -> None:
        self._query_client = query_client
        self._page_size = page_size

    async def _ask(
        self, operation: Operation, command: Command, reply: type[ModelT], deadline: float
    ) -> ModelT:
        return await self._query_client.query(operation, SERVICE, command, reply, deadline)

    async def _find(
        self,
        operation: Operation,
        command: type[r.FindByIds | r.FindHolders],
        reply: type[ModelT],
        ids: Sequence[str],
        deadline: float,
    ) -> AsyncIterator[ModelT]:
        """The replies for these ids, each for as many as one query may name."""
        for chunk in chunks(ids):
            yield await self._ask(operation, command(ids=chunk), reply, deadline)

    def _after(self, after: str | None) -> r.PageAfter:
        return r.PageAfter(after=after, limit=self._page_size)


class PaymentsQueries(_Queries):
    """See `ports.Payments`."""

    async def page_of_wires(self, after: str | None, deadline: float) -> Page[r.RecordedWire]:
        reply = await self._ask(
            payments.PAGE_RECORDED_WIRES, self._after(after), r.RecordedWires, deadline
        )
        return Page(reply.wires, reply.next_after)

    async def wires(self, ids: Sequence[str], deadline: float) -> Mapping[str, r.RecordedWire]:
        replies = self._find(
            payments.FIND_RECORDED_WIRES, r.FindByIds, r.RecordedWires, ids, deadline
        )
        return {wire.transaction_id: wire async for reply in replies for wire in reply.wires}

    async def contradictions_after(self, after: int, deadline: float) -> Sequence[r.Contradiction]:
        command = r.PageContradictions(after=after, limit=self._page_size)
        reply = await self._ask(payments.PAGE_CONTRADICTIONS, command, r.Contradictions, deadline)
        return reply.contradictions

    async def contradictions(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, r.Contradiction]:
        replies = self._find(
            payments.FIND_CONTRADICTIONS, r.FindByIds, r.Contradictions, ids, deadline
        )
        return {
            str(one.contradiction_id): one
            async for reply in replies
            for one in reply.contradictions
        }


class OnboardingQueries(_Queries):
    """See `ports.Onboarding`."""

    async def page_of_customers(
        self, after: str | None, deadline: float
    ) -> Page[r.RecordedCustomer]:
        command = r.PageCustomers(after=after, limit=self._page_size, external_accounts=False)
        reply = await self._ask(
            onboarding.PAGE_RECORDED_CUSTOMERS, command, r.RecordedCustomers, deadline
        )
        return Page(reply.customers, reply.next_after)

    async def customers(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, r.RecordedCustomer]:
        found: dict[str, r.RecordedCustomer] = {}
        for chunk in chunks(ids):
            command = r.FindCustomers(ids=chunk, external_accounts=False)
            reply = await self._ask(
                onboarding.FIND_RECORDED_CUSTOMERS, command, r.RecordedCustomers, deadline
            )
            found |= {customer.customer_id: customer for customer in reply.customers}
        return found

    async def page_of_external_accounts(
        self, after: str | None, deadline: float
    ) -> Page[r.RecordedExternalAccount]:
        reply = await self._ask(
            onboarding.PAGE_RECORDED_EXTERNAL_ACCOUNTS,
            self._after(after),
            r.RecordedExternalAccounts,
            deadline,
        )
        return Page(reply.external_accounts, reply.next_after)

    async def external_accounts(
        self, ids: Sequence[str], deadline: float
    ) -> Mapping[str, r.RecordedExternalAccount]:
        replies = self._find(
            onboarding.FIND_RECORDED_EXTERNAL_ACCOUNTS,
            r.FindByIds,
            r.RecordedExternalAccounts,
            ids,
            deadline,
        )
        return {
            account.external_account_id: account
            async for reply in replies
            for account in reply.external_accounts
        }

    async def holders(self, ids: Sequence[str], deadline: float) -> Mapping[str, r.Holder]:
        replies = self._find(onboarding.FIND_HOLDERS, r.FindHolders, r.Holders, ids, deadline)
        return {holder.record_id: holder async for reply in replies for holder in reply.holders}

    async def page_of_answers(self, after: str | None, deadline: float) -> Page[r.AnsweredCommand]:
        reply = await self._ask(
            onboarding.PAGE_ANSWERED_COMMANDS, self._after(after), r.AnsweredCommands, deadline
        )
        return Page(reply.answers, reply.next_after)

    async def answers(self, ids: Sequence[str], deadline: float) -> Mapping[str, r.AnsweredCommand]:
        replies = self._find(
            onboarding.FIND_ANSWERED_COMMANDS, r.FindByIds, r.AnsweredCommands, ids, deadline
        )
        return {answer.command_id: answer async for reply in replies for answer in reply.answers}
