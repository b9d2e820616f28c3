"""The second half of an onboarding: an approved application becomes a customer of the bank with an account.

It is carried out by the onboarding itself or by the decision that completes its verification, with the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import structlog

from libs.contracts.customers import CustomerStatus
from libs.handling.commands import Drive
from libs.runtime.crash import crash_point
from services.onboarding.handlers.denial import Denial, Undo
from services.onboarding.handlers.parts import Parts
from services.onboarding.models import CustomerFile, CustomerRecord
from services.onboarding.ports import Closed, CoreCustomer, LinkedAccount, OpenedAccount
from services.onboarding.repository import accounts
from services.onboarding.repository.steps import SagaName
from services.onboarding.saga import Saga, StepRefused


class OpeningRefused(Exception):
    """Core banking would not have the customer: what was begun is taken back and the customer is denied."""


@dataclass
class _Opened:
    """What core banking has so far, and how to take it back."""

    customers: list[str] = field(default_factory=list)
    undo: list[Undo] = field(default_factory=list)


def saga_of(drive: Drive, customer: CustomerRecord) -> Saga:
    """The saga by which the customer came to be, continued by this drive."""
    name = SagaName(
        saga_id=customer.saga_id,
        tenant=customer.tenant,
        customer_id=customer.customer_id,
        operation="onboarding.onboard_customer",
    )
    return Saga(drive, name)


class Opening:
    """Crash points besides those of the steps: `onboarding.opened.committing` and `.committed`."""

    def __init__(self, parts: Parts, denial: Denial) -> None:
        self._parts = parts
        self._denial = denial

    async def open(self, saga: Saga, file: CustomerFile) -> CustomerFile:
        """The file afterwards: approved, with account and external account.

        Raises:
            OpeningRefused: a definite no.
            OutcomePending: run it again.
            NeedsOperator: core banking may have forgotten a step of unknown outcome.
        """
        opened = _Opened()
        try:
            linked, account = await self._at_core(saga, file, opened)
        except StepRefused as refused:
            await self._denial.deny(saga, opened.undo)
            structlog.get_logger("opening").warning(
                "opening_refused", customer=str(saga.name.customer_id), reason=refused.reason.value
            )
            raise OpeningRefused from refused
        return await self._record(saga, opened, linked, account)

    async def _at_core(
        self, saga: Saga, file: CustomerFile, opened: _Opened
    ) -> tuple[LinkedAccount, OpenedAccount]:
        core, customer = self._parts.core, file.customer
        async with saga.drive.transaction() as connection:
            details = await self._parts.store.details(connection, file)
        assert details.draft is not None, "an application has a draft until it is opened"
        business = await saga.step(
            "create_core_business",
            CoreCustomer,
            core.create_business(customer.customer_id, details.business),
        )
        self._add_customer(saga, opened, "close_core_business", business.core_id)
        told = zip(file.persons, details.persons, strict=True)
        for number, (person, person_details) in enumerate(told, start=1):
            created = await saga.step(
                f"create_core_person.{number}",
                CoreCustomer,
                core.create_person(person.person_id, customer.customer_id, person_details),
            )
            self._add_customer(saga, opened, f"close_core_person.{number}", created.core_id)
        linked = await saga.step(
            "link_external_account",
            LinkedAccount,
            core.link_external_account(business.core_id, details.draft),
        )
        close = core.close_external_account(linked.external_account_id)
        opened.undo.append(partial(saga.compensate, "close_external_account", Closed, close))
        account = await saga.step(
            "open_account",
            OpenedAccount,
            core.open_account(business.core_id, customer.business.business_name),
        )
        return linked, account

    def _add_customer(self, saga: Saga, opened: _Opened, step: str, core_id: str) -> None:
        opened.customers.append(core_id)
        close = self._parts.core.close_customer(core_id)
        opened.undo.append(partial(saga.compensate, step, Closed, close))

    async def _record(
        self, saga: Saga, opened: _Opened, linked: LinkedAccount, account: OpenedAccount
    ) -> CustomerFile:
        """The one commit by which the customer is approved: all that core banking gave, or nothing."""
        parts, name = self._parts, saga.name
        async with saga.drive.transaction() as connection:
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            draft = file.draft
            assert draft is not None
            business_id, *person_ids = opened.customers
            await parts.store.customers.set_core_id(connection, file.customer, business_id)
            for person, core_id in zip(file.persons, person_ids, strict=True):
                await parts.store.persons.set_core_id(connection, person, core_id)
            await parts.store.external_accounts.link(connection, draft, linked.external_account_id)
            await accounts.add(connection, file.customer, account)
            await parts.move(connection, file, CustomerStatus.APPROVED)
            file = await parts.locked_file(connection, name.tenant, name.customer_id)
            for external in file.external_accounts:
                await parts.events.of_external_account(
                    connection, "external_account.created", external
                )
            crash_point("onboarding.opened.committing")
        crash_point("onboarding.opened.committed")
        return file
