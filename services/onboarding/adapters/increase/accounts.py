"""Opening an account with its number, and closing a customer with its accounts: writes of several requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID, uuid5

from increase import AsyncIncrease, Omit

from libs.providers.errors import AttemptFailed, ProviderRefusal
from libs.providers.increase.account_numbers import AccountNumber, AccountNumbers
from libs.providers.increase.accounts import Account, Accounts, retrieve_account
from libs.providers.increase.answers import read_answer
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.keyed_write import KeyedWrite
from libs.providers.increase.lists import LARGEST_PAGE
from libs.providers.outcomes import Accepted, Finding, NotSent, Outcome, Reason, Refused, Unknown
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.increase.unkeyed_writes import is_decision
from services.onboarding.ports import Closed, OpenedAccount

CLOSED = Closed("closed")


@dataclass(frozen=True)
class AccountOpening:
    """An account under the step's key, then its number under a key made of it. See `writing.ProviderWrite`.

    A number that is refused leaves an account without one: the opening is refused, and the customer's accounts are
    closed with it.
    """

    client: IncreaseClient
    capabilities: Capabilities
    entity_id: str
    name: str
    program_id: str | Omit
    operation: str = "open_account"
    finds_only_sends: bool = field(default=True, init=False)

    async def send(self, key: UUID, deadline: float) -> Outcome[OpenedAccount]:
        account = await self._account().send(key, deadline)
        if not isinstance(account, Accepted):
            return account
        number = await self._number(account.answer).send(number_key(key), deadline)
        if isinstance(number, NotSent):
            return Unknown(f"the account has no number yet: {number.why}")
        return number

    async def find(self, key: UUID, deadline: float) -> Finding[OpenedAccount]:
        """Found when both are there."""
        account = await self._account().find(key, deadline)
        if not isinstance(account, Accepted):
            return account
        return await self._number(account.answer).find(number_key(key), deadline)

    def _account(self) -> ProviderWrite[str]:
        async def create(sdk: AsyncIncrease, key: str) -> Account:
            answer = await sdk.accounts.with_raw_response.create(
                entity_id=self.entity_id,
                name=self.name,
                program_id=self.program_id,
                idempotency_key=key,
            )
            return read_answer(answer, Account)

        async def having_key(sdk: AsyncIncrease, key: str) -> Accounts:
            return read_answer(
                await sdk.accounts.with_raw_response.list(idempotency_key=key), Accounts
            )

        return KeyedWrite(
            self.client,
            self.capabilities,
            "create_account",
            create,
            having_key,
            retrieve_account,
            lambda made: made.id if made.entity_id == self.entity_id else None,
        )

    def _number(self, account_id: str) -> ProviderWrite[OpenedAccount]:
        async def create(sdk: AsyncIncrease, key: str) -> AccountNumber:
            answer = await sdk.account_numbers.with_raw_response.create(
                account_id=account_id, name=self.name, idempotency_key=key
            )
            return read_answer(answer, AccountNumber)

        async def having_key(sdk: AsyncIncrease, key: str) -> AccountNumbers:
            answer = await sdk.account_numbers.with_raw_response.list(idempotency_key=key)
            return read_answer(answer, AccountNumbers)

        async def retrieve(sdk: AsyncIncrease, number_id: str) -> AccountNumber:
            answer = await sdk.account_numbers.with_raw_response.retrieve(number_id)
            return read_answer(answer, AccountNumber)

        def answer(made: AccountNumber) -> OpenedAccount | None:
            if made.account_id != account_id:
                return None
            return OpenedAccount(account_id, made.account_number)

        return KeyedWrite(
            self.client,
            self.capabilities,
            "create_account_number",
            create,
            having_key,
            retrieve,
            answer,
        )


@dataclass(frozen=True)
class CustomerClosing:
    """The customer's open accounts are closed, then its entity is archived, by which it is known to be closed.

    Args:
        archive: of the entity.
    """

    client: IncreaseClient
    capabilities: Capabilities
    entity_id: str
    archive: ProviderWrite[object]
    operation: str = "close_customer"
    finds_only_sends: bool = field(default=False, init=False)

    async def send(self, key: UUID, deadline: float) -> Outcome[Closed]:
        has_sent = False
        try:
            for account_id in await self._open_accounts(deadline):
                has_sent = True
                await self._close(account_id, key, deadline)
        except ProviderRefusal as refusal:
            if is_decision(refusal, self.operation):
                return Refused(Reason.PROVIDER_REFUSED, refusal.code, refusal.message)
            return Unknown(str(refusal))
        except AttemptFailed as error:
            if error.failure.is_certainly_without_effect and not has_sent:
                return NotSent(str(error))
            return Unknown(str(error))
        archived = await self.archive.send(key, deadline)
        match archived:
            case Accepted():
                return Accepted(CLOSED)
            case NotSent(why) if has_sent:
                return Unknown(why)
            case _:
                return archived

    async def find(self, key: UUID, deadline: float) -> Finding[Closed]:
        found = await self.archive.find(key, deadline)
        return Accepted(CLOSED) if isinstance(found, Accepted) else found

    async def _open_accounts(self, deadline: float) -> list[str]:
        """A customer has one; of more than a page the archive refuses, which an operator sees."""

        async def call(sdk: AsyncIncrease) -> Accounts:
            answer = await sdk.accounts.with_raw_response.list(
                entity_id=self.entity_id, status={"in": ["open"]}, limit=LARGEST_PAGE
            )
            return read_answer(answer, Accounts)

        page = await self.client.repeated("list_accounts", call, deadline=deadline)
        return [account.id for account in page.data]

    async def _close(self, account_id: str, key: UUID, deadline: float) -> None:
        close_key = str(uuid5(key, account_id))

        async def call(sdk: AsyncIncrease) -> Account:
            answer = await sdk.accounts.with_raw_response.close(
                account_id, idempotency_key=close_key
            )
            return read_answer(answer, Account)

        await self.client.once("close_account", call, deadline=deadline)


def number_key(key: UUID) -> UUID:
    """The key of an account's number, by the key of the account."""
    return uuid5(key, "account_number")
