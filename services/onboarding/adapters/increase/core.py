"""Core banking at Increase: the entities that own accounts, their accounts, and external accounts.

Increase's external accounts are of no customer: whose one is, and which is a customer's primary one, only we know.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from increase import AsyncIncrease, omit

from libs.contracts.customers import Business, ExternalBankAccount
from libs.providers.increase.answers import read_answer
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.external_accounts import (
    ARCHIVED,
    ExternalAccount,
    ExternalAccounts,
    retrieve_external_account,
)
from libs.providers.increase.keyed_write import KeyedWrite
from libs.providers.increase.texts import text_at_increase
from libs.providers.writing import Capabilities, ProviderWrite
from services.onboarding.adapters.increase.accounts import CLOSED, AccountOpening, CustomerClosing
from services.onboarding.adapters.increase.customers import Customers
from services.onboarding.adapters.increase.parameters import description_of
from services.onboarding.adapters.increase.unkeyed_writes import Change, Known, of_changes
from services.onboarding.models import PersonDetails
from services.onboarding.ports import (
    Changes,
    Closed,
    CoreCustomer,
    KnownPerson,
    LinkedAccount,
    OpenedAccount,
)


class IncreaseCoreBanking:
    """See `ports.CoreBanking`.

    Args:
        is_identity: Increase verifies identities here too. The entity that was made for that is the customer: what
            became of it is not written twice.
        program_id: of new accounts; None: the only program.
    """

    def __init__(
        self,
        client: IncreaseClient,
        capabilities: Capabilities,
        *,
        is_identity: bool,
        program_id: str | None,
    ) -> None:
        self._client = client
        self._capabilities = capabilities
        self._is_identity = is_identity
        self._program_id = program_id
        self._customers = Customers(
            client, capabilities, lambda _, known_as: CoreCustomer(known_as)
        )

    def create_business(
        self,
        customer_id: UUID,
        business: Business,
        persons: Sequence[PersonDetails],
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]:
        if self._is_identity:
            return self._known(identity_id)
        return self._customers.create(customer_id, business, persons)

    def create_person(
        self,
        person_id: UUID,
        customer_id: UUID,
        persons: Sequence[PersonDetails],
        number: int,
        business_core_id: str,
        identity_id: str,
    ) -> ProviderWrite[CoreCustomer]:
        if self._is_identity:
            return self._known(identity_id)
        return self._customers.person(business_core_id, person_id, persons, number)

    def change_business(self, core_id: str, changes: Changes) -> ProviderWrite[CoreCustomer]:
        if self._is_identity:
            return self._known(core_id)
        return self._customers.update_business(core_id, changes)

    def change_person(
        self, known: KnownPerson, changes: Changes, person: PersonDetails, identity_id: str
    ) -> ProviderWrite[CoreCustomer]:
        if self._is_identity:
            return self._known(identity_id)
        return self._customers.update_person(known, changes, person)

    def close_business(self, core_id: str) -> ProviderWrite[Closed]:
        return CustomerClosing(
            self._client, self._capabilities, core_id, self._customers.archive(core_id)
        )

    def close_person(self, core_id: str) -> ProviderWrite[Closed]:
        """Owners go with their entity, which is archived by the step of the business."""
        return Known("close_owner", self._capabilities, CLOSED)

    def link_external_account(
        self, core_id: str, account: ExternalBankAccount
    ) -> ProviderWrite[LinkedAccount]:
        async def create(sdk: AsyncIncrease, key: str) -> ExternalAccount:
            answer = await sdk.external_accounts.with_raw_response.create(
                account_number=account.account_number,
                routing_number=account.routing_number,
                description=description_of(account),
                account_holder="business",
                funding="checking",
                idempotency_key=key,
            )
            return read_answer(answer, ExternalAccount)

        async def having_key(sdk: AsyncIncrease, key: str) -> ExternalAccounts:
            answer = await sdk.external_accounts.with_raw_response.list(idempotency_key=key)
            return read_answer(answer, ExternalAccounts)

        def linked(made: ExternalAccount) -> LinkedAccount | None:
            theirs = (made.routing_number, made.account_number)
            ours = (account.routing_number, account.account_number)
            return LinkedAccount(made.id) if theirs == ours else None

        return KeyedWrite(
            self._client,
            self._capabilities,
            "create_external_account",
            create,
            having_key,
            retrieve_external_account,
            linked,
        )

    def close_external_account(self, external_account_id: str) -> ProviderWrite[Closed]:
        async def archive(sdk: AsyncIncrease, _: str) -> ExternalAccount:
            answer = await sdk.external_accounts.with_raw_response.update(
                external_account_id, status="archived"
            )
            return read_answer(answer, ExternalAccount)

        return Change(
            self._client,
            of_changes(self._capabilities),
            "archive_external_account",
            archive,
            lambda sdk: retrieve_external_account(sdk, external_account_id),
            lambda account: account.status == ARCHIVED,
            lambda _: CLOSED,
        )

    def open_account(self, core_id: str, title: str) -> ProviderWrite[OpenedAccount]:
        return AccountOpening(
            self._client,
            self._capabilities,
            core_id,
            text_at_increase(title),
            self._program_id or omit,
        )

    def _known(self, core_id: str) -> Known[CoreCustomer]:
        return Known("find_entity", self._capabilities, CoreCustomer(core_id))
