"""The second half of an onboarding: an approved application becomes a customer of the bank with an account.

It is carried out by the onboarding itself or by the decision that completes its verification, with the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import structlog

from libs.contracts.customers import CustomerStatus
from libs.handling.commands import Drive
from libs.providers.writing import ProviderWrite
from libs.runtime.crash import crash_point
from services.onboarding.handlers.denial import Denial, Undo
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerDetails, CustomerFile, Verification
from services.onboarding.ports import Closed, CoreCustomer, LinkedAccount, OpenedAccount
from services.onboarding.repository.onboarding_commits import OPEN, Opened
from services.onboarding.repository.step_commits import Advance
from services.onboarding.repository.steps import Begun, SagaName
from services.onboarding.saga import Saga, StepRefused

CREATE_CORE_BUSINESS = "create_core_business"


class OpeningRefused(Exception):
    """Core banking would not have the customer: what was begun is taken back and the customer is denied."""


@dataclass
class _CoreRecords:
    """What core banking has so far, and how to take it back."""

    customers: list[str] = field(default_factory=list)
    undo: list[Undo] = field(default_factory=list)


def saga_of(drive: Drive, saga_id: UUID, customer_id: UUID) -> Saga:
    """The saga by which a customer comes to be, continued by this drive."""
    name = SagaName(
        saga_id=saga_id,
        tenant=drive.principal.tenant,
        customer_id=customer_id,
        operation="onboarding.onboard_customer",
    )
    return Saga(drive, name)


class Opening:
    """Crash points besides those of the steps: `onboarding.opened.committing` and `.committed`."""

    def __init__(self, parts: Parts, denial: Denial) -> None:
        self._parts = parts
        self._denial = denial

    async def open(
        self, saga: Saga, file: CustomerFile, details: CustomerDetails | None = None
    ) -> CustomerFile:
        """The file afterwards: approved, with account and external account.

        Args:
            details: of the customer, where they are known; read otherwise.

        Raises:
            OpeningRefused: a definite no.
            OutcomePending: run it again.
            NeedsOperator: core banking may have forgotten a step of unknown outcome.
        """
        if details is None:
            async with saga.drive.transaction() as connection:
                details = await self._parts.store.details(connection, file)
        records = _CoreRecords()
        try:
            return await self._at_core(saga, file, details, records)
        except StepRefused as refused:
            await self._denial.deny(saga, records.undo)
            structlog.get_logger("opening").warning(
                "opening_refused", customer=str(saga.name.customer_id), reason=refused.reason.value
            )
            raise OpeningRefused from refused

    async def _at_core(
        self, saga: Saga, file: CustomerFile, details: CustomerDetails, records: _CoreRecords
    ) -> CustomerFile:
        core, customer = self._parts.core, file.customer
        assert details.draft is not None, "an application has a draft until it is opened"
        business = await saga.step(
            CREATE_CORE_BUSINESS,
            CoreCustomer,
            core.create_business(
                customer.customer_id,
                details.business,
                details.persons,
                _identity_id(customer.verification),
            ),
            following="create_core_person.1",
        )
        close_business = core.close_business(business.core_id)
        _add_customer(saga, records, "close_core_business", business.core_id, close_business)
        for number, person in enumerate(file.persons, start=1):
            is_last = number == len(file.persons)
            created = await saga.step(
                f"create_core_person.{number}",
                CoreCustomer,
                core.create_person(
                    person.person_id,
                    customer.customer_id,
                    details.persons,
                    number - 1,
                    business.core_id,
                    _identity_id(person.verification),
                ),
                following="link_external_account"
                if is_last
                else f"create_core_person.{number + 1}",
            )
            close_person = core.close_person(created.core_id)
            step = f"close_core_person.{number}"
            _add_customer(saga, records, step, created.core_id, close_person)
        linked = await saga.step(
            "link_external_account",
            LinkedAccount,
            core.link_external_account(business.core_id, details.draft),
            following="open_account",
        )
        close = core.close_external_account(linked.external_account_id)
        records.undo.append(partial(saga.compensate, "close_external_account", Closed, close))
        approved: list[CustomerFile] = []

        async def approve(advance: Advance, account: OpenedAccount) -> Begun | None:
            approved.append(await self._approve(saga, file, advance, records, linked, account))
            return None

        await saga.step(
            "open_account",
            OpenedAccount,
            core.open_account(business.core_id, customer.business.business_name),
            record=approve,
        )
        assert approved, "the account is recorded with its customer alone"
        return approved[0]

    async def _approve(
        self,
        saga: Saga,
        file: CustomerFile,
        advance: Advance,
        records: _CoreRecords,
        linked: LinkedAccount,
        account: OpenedAccount,
    ) -> CustomerFile:
        """The one commit by which the customer is approved: all that core banking gave, or nothing."""
        assert file.draft is not None
        business_id, *person_ids = records.customers
        crash_point("onboarding.opened.committing")
        approved = await saga.drive.commit(
            OPEN,
            Opened(
                advance=advance,
                leaves_pending=file.customer.status is CustomerStatus.PENDING,
                core_id=business_id,
                persons={
                    person.person_id: core_id
                    for person, core_id in zip(file.persons, person_ids, strict=True)
                },
                draft_id=file.draft.draft_id,
                external_account_id=linked.external_account_id,
                account_id=account.account_id,
                account_number=account.account_number,
            ),
        )
        crash_point("onboarding.opened.committed")
        return approved


def _add_customer(
    saga: Saga, records: _CoreRecords, step: str, core_id: str, close: ProviderWrite[Closed]
) -> None:
    records.customers.append(core_id)
    records.undo.append(partial(saga.compensate, step, Closed, close))


def _identity_id(verification: Verification | None) -> str:
    assert verification is not None, "what is opened is verified"
    return verification.identity_id
