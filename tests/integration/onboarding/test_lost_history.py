"""What is answered, and found again, while the database may have gone back to an earlier state."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from sqlalchemy import text

from libs.contracts import onboarding_operations as table
from libs.contracts.customer_views import ExternalBankAccountAdded, OnboardingResult
from libs.contracts.customers import (
    AddExternalBankAccount,
    OnboardCustomer,
    UpdateBusiness,
    UpdatePerson,
)
from libs.contracts.customers import CustomerStatus as Status
from libs.contracts.errors import AlreadyExists, NotFound, OutcomePending
from libs.persistence import inbox
from services.onboarding.ids import DECISION
from services.onboarding.ordering import ordering_key
from tests.integration.onboarding import driving
from tests.integration.onboarding.desk import application, bank_account
from tests.integration.onboarding.handling import ONBOARDING, Handling
from tests.support.database_life import distrusted, missing_records
from tests.support.people import new_ein

UPDATE, ADD = table.UPDATE_BUSINESS.name, table.ADD_EXTERNAL_BANK_ACCOUNT.name


def keyed() -> UUID:
    """The command id of a request with an Idempotency-Key."""
    return uuid5(uuid4(), "key")


async def refused_commands(handling: Handling) -> list[tuple[str, Any, type[Exception]]]:
    """Each with its operation and the refusal."""
    ein, taken, number = new_ein(), new_ein(), bank_account()
    for applied in (ein, taken):
        command = application(external_bank_account=number)
        business = command.business.model_copy(update={"ein": applied})
        leased = await handling.accept(ONBOARDING)
        result = await handling.drive(leased, command.model_copy(update={"business": business}))
    assert isinstance(result.data, OnboardingResult)
    customer_id, linked = str(result.data.business.customer_id), result.data.external_bank_account
    other = application()
    return [
        (
            UPDATE,
            UpdateBusiness.model_validate({"customer_id": str(uuid4()), "business": {"dba": "A"}}),
            NotFound,
        ),
        (
            table.UPDATE_PERSON.name,
            UpdatePerson.model_validate({"person_id": str(uuid4()), "last_name": "A"}),
            NotFound,
        ),
        (ADD, account_beside("ext_lost", bank_account()), NotFound),
        (
            ONBOARDING,
            other.model_copy(update={"business": other.business.model_copy(update={"ein": ein})}),
            AlreadyExists,
        ),
        (
            UPDATE,
            UpdateBusiness.model_validate({"customer_id": customer_id, "business": {"ein": ein}}),
            AlreadyExists,
        ),
        (ADD, account_beside(linked.external_bank_account_id, number), AlreadyExists),
    ]


def account_beside(known: str | None, account: dict[str, Any]) -> AddExternalBankAccount:
    return AddExternalBankAccount.model_validate(
        {"external_bank_account_id": known, "external_bank_account": account}
    )


async def test_nothing_that_the_bank_may_have_is_refused_for_good(handling: Handling) -> None:
    for operation, command, refusal in await refused_commands(handling):
        leased = await driving.accept(
            handling.database, operation, handling.principal, driving.any_order()
        )
        async with distrusted(handling.database, lost_seconds=5, began_seconds=60):
            with pytest.raises(OutcomePending):
                await handling.drive(leased, command)
        with pytest.raises(refusal):
            await handling.drive(leased, command)


async def test_external_accounts_that_were_lost_are_found_in_their_order_however_they_are_repeated(
    handling: Handling,
) -> None:
    onboarded = await handling.drive(await handling.accept(ONBOARDING), application())
    assert isinstance(onboarded.data, OnboardingResult)
    first = onboarded.data.external_bank_account.external_bank_account_id
    order = ordering_key(handling.principal.tenant, await handling.customer_id())
    keys, accounts = (keyed(), keyed()), (bank_account(), bank_account())

    async def add(number: int, command: AddExternalBankAccount) -> str:
        leased = await driving.accept(
            handling.database, ADD, handling.principal, order, command_id=keys[number]
        )
        result = await driving.drive_to_end(
            handling.database, handling.handlers, leased, handling.principal, command
        )
        assert isinstance(result.data, ExternalBankAccountAdded)
        return result.data.external_bank_account_id

    earlier = account_beside(first, accounts[0])
    second = await add(0, earlier)
    later = account_beside(second, accounts[1])
    third = await add(1, later)
    await lose(handling, keys)

    async with distrusted(handling.database, lost_seconds=5, began_seconds=60):
        leased = await driving.accept(
            handling.database, ADD, handling.principal, command_id=keys[1]
        )
        with pytest.raises(OutcomePending):
            await handling.drive(leased, later)
        assert await add(0, earlier) == second
        with pytest.raises(OutcomePending):
            await handling.drive(leased, later)
        by_id = "SELECT ordering_key FROM inbox WHERE command_id = :id"
        assert await handling.value(by_id, id=leased.command_id) == order
        again = await handling.drive(leased, later)

    assert again.data == ExternalBankAccountAdded(external_bank_account_id=third)


@pytest.mark.parametrize(
    ("first", "now"),
    [
        (Status.PENDING_REVIEW, Status.APPROVED),
        (Status.PENDING, Status.APPROVED),
        (Status.APPROVED, Status.PENDING_REVIEW),
    ],
)
async def test_a_customer_that_was_lost_is_where_the_provider_has_it_once_it_is_onboarded_again(
    handling: Handling, first: Status, now: Status
) -> None:
    """The feed told of the decision before the customer was known again."""
    handling.bank.verdicts["business"] += [first]
    command_id, command = keyed(), application()
    await onboard(handling, command_id, command)
    identity_id = await handling.identity_of("business")
    handling.bank.says_now(identity_id, now)
    await lose_all(handling)

    async with distrusted(handling.database, lost_seconds=5, began_seconds=60):
        leased = await onboard(handling, command_id, command)
        await handling.drive_decisions()
        if first is Status.PENDING:
            await handling.drive(leased, command)
        else:
            await handling.drive_decisions()  # in the customer's order

    assert await handling.identity_of("business") == identity_id
    assert await handling.status() == now.value
    assert handling.bank.calls["open_account"].count("send") == 1


async def test_an_onboarding_that_was_lost_and_is_found_at_the_bank_opens_a_case(
    handling: Handling,
) -> None:
    """Once it is carried out again, the check of continuity finds nothing missing."""
    command_id, command = keyed(), application()
    await onboard(handling, command_id, command)
    await lose_all(handling)

    async with distrusted(handling.database, lost_seconds=5, began_seconds=60):
        await onboard(handling, command_id, command)
        missing = await missing_records(handling.database)

    customer_id = await handling.customer_id()
    assert missing == [f"identity: {customer_id}", f"core: {customer_id}"]


async def test_a_customer_that_is_new_while_the_database_is_in_doubt_is_not_asked_about_nor_missed(
    handling: Handling,
) -> None:
    async with distrusted(handling.database, lost_seconds=5, began_seconds=60):
        await onboard(handling, keyed(), application())
        missing = await missing_records(handling.database)

    assert missing == []
    assert await handling.status() == "approved"
    asking = "SELECT count(*) FROM inbox WHERE operation = :of AND principal LIKE :tenant"
    tenant = f"%{handling.principal.tenant}%".encode()
    assert await handling.value(asking, of=DECISION, tenant=tenant) == 0


async def onboard(handling: Handling, command_id: UUID, command: OnboardCustomer) -> inbox.Leased:
    leased = await driving.accept(
        handling.database, ONBOARDING, handling.principal, command_id=command_id
    )
    with suppress(OutcomePending):
        await handling.drive(leased, command)
    return leased


async def lose_all(handling: Handling) -> None:
    """All of the tenant, as if the database went back to before its first customer."""
    tenant = handling.principal.tenant
    async with handling.database.transaction() as connection:
        commands = await connection.execute(
            text("SELECT command_id FROM saga_steps WHERE tenant = :tenant"), {"tenant": tenant}
        )
        ids = list(commands.scalars())
        of_customers = ("accounts", "ein_holds", "external_accounts", "persons", "customers")
        for lost in (*of_customers, "saga_steps"):
            await connection.execute(
                text(f"DELETE FROM {lost} WHERE tenant = :tenant"), {"tenant": tenant}
            )
        for lost in ("saga_origin", "inbox"):
            await connection.execute(
                text(f"DELETE FROM {lost} WHERE command_id = ANY(:ids)"), {"ids": ids}
            )


async def lose(handling: Handling, command_ids: tuple[UUID, ...]) -> None:
    """All that the commands, each of which added an external account, left in the database."""
    tenant, ids = handling.principal.tenant, list(command_ids)
    async with handling.database.transaction() as connection:
        for statement in (
            (
                "DELETE FROM external_accounts e WHERE tenant = :tenant AND linked_at >"
                " (SELECT min(linked_at) FROM external_accounts WHERE tenant = e.tenant)"
            ),
            "UPDATE external_accounts SET is_primary = true WHERE tenant = :tenant",
            "DELETE FROM saga_steps WHERE tenant = :tenant AND command_id = ANY(:ids)",
            "DELETE FROM saga_origin WHERE :tenant <> '' AND command_id = ANY(:ids)",
            "DELETE FROM inbox WHERE :tenant <> '' AND command_id = ANY(:ids)",
        ):
            values = {"tenant": tenant, **({"ids": ids} if ":ids" in statement else {})}
            await connection.execute(text(statement), values)
