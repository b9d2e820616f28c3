"""What callers and event receivers see of a customer: no TIN, no date of birth, numbers cut where they must be."""

from __future__ import annotations

from typing import Any

from libs.contracts import customer_views as views
from libs.contracts.customers import CustomerStatus
from libs.contracts.masking import masked
from libs.contracts.operating import customers as operating
from libs.contracts.operating.saga_steps import SagaStep
from services.onboarding.ids import derived
from services.onboarding.models import (
    DEPOSIT,
    PROVIDER_REFUSED,
    CustomerFile,
    ExternalAccountRecord,
    PersonRecord,
    Verification,
)

WOULD_NOT_TAKE = "A provider would not take the customer."


def onboarding_result(file: CustomerFile) -> views.OnboardingResult:
    deposits = [account for account in file.accounts if account.account_group == DEPOSIT]
    account = deposits[0] if deposits else None
    draft_id = derived(file.customer.saga_id, "external_account")
    linked = [a.external_account_id for a in file.external_accounts if a.draft_id == draft_id]
    return views.OnboardingResult(
        status=file.customer.status,
        business=views.OnboardedBusiness(
            customer_id=str(file.customer.customer_id),
            account_id=account.account_id if account else None,
            account_number=account.account_number if account else None,
        ),
        external_bank_account=views.OnboardedExternalBankAccount(
            external_bank_account_id=linked[0] if linked else None
        ),
        persons=[
            views.OnboardedPerson(
                customer_id=str(person.person_id),
                first_name=person.first_name,
                last_name=person.last_name,
            )
            for person in file.persons
        ],
    )


def customer(file: CustomerFile) -> views.Customer:
    return views.Customer(**_base(file), business=_business(file))


def customer_event(file: CustomerFile) -> views.CustomerEventData:
    base = _base(file)
    accounts = [
        account.model_copy(update={"account_number": masked(account.account_number)})
        for account in base.pop("accounts")
    ]
    return views.CustomerEventData(**base, accounts=accounts, business=file.customer.business)


def operator_customer(file: CustomerFile, steps: list[SagaStep]) -> operating.OperatorCustomer:
    """For operators; of every number the last four digits."""
    customer = file.customer
    return operating.OperatorCustomer(
        customer_id=str(customer.customer_id),
        tenant=customer.tenant,
        status=customer.status,
        business=_business(file),
        identity_id=customer.verification.identity_id if customer.verification else None,
        core_id=customer.core_id,
        refused_by_provider=customer.refused_by_provider,
        issues=_issues(file),
        persons=[_operator_person(person) for person in file.persons],
        accounts=[
            operating.OperatorAccount(
                id=account.account_id,
                account_number=masked(account.account_number),
                account_group=account.account_group,
                status=account.status,
            )
            for account in file.accounts
        ],
        external_bank_accounts=[
            operating.OperatorExternalAccount(
                draft_id=str(account.draft_id),
                external_bank_account_id=account.external_account_id,
                bank_name=account.bank_name,
                name_on_account=account.name_on_account,
                routing_number=account.routing_number,
                account_number=account.number_last_four,
                primary=account.primary,
            )
            for account in file.external_accounts
        ],
        steps=steps,
        created_at=customer.created_at,
        updated_at=customer.updated_at,
    )


def _operator_person(person: PersonRecord) -> operating.OperatorPerson:
    return operating.OperatorPerson(
        **_person(person).model_dump(),
        controller=person.controller,
        ownership_percentage=person.ownership_percentage,
        identity_id=person.verification.identity_id if person.verification else None,
        core_id=person.core_id,
    )


def person_event(person: PersonRecord) -> views.PersonEventData:
    summary = _person(person)
    return views.PersonEventData(
        **summary.model_dump(), business_customer_id=str(person.customer_id)
    )


def external_account_event(account: ExternalAccountRecord) -> views.ExternalAccountEventData:
    assert account.external_account_id is not None, "a draft has no events"
    return views.ExternalAccountEventData(
        external_account_id=account.external_account_id,
        customer_id=str(account.customer_id),
        bank_name=account.bank_name,
        name_on_account=account.name_on_account,
        routing_number=account.routing_number,
        account_number=account.number_last_four,
        primary=account.primary,
    )


def _business(file: CustomerFile) -> views.BusinessDetails:
    return views.BusinessDetails(**dict(file.customer.business), ein=file.customer.ein_last_four)


def _base(file: CustomerFile) -> dict[str, Any]:
    return {
        "customer_id": str(file.customer.customer_id),
        "status": file.customer.status,
        "issues": _issues(file),
        "persons": [_person(person) for person in file.persons],
        "accounts": [
            views.CustomerAccount(
                id=account.account_id, account_number=account.account_number, status=account.status
            )
            for account in file.accounts
        ],
        "external_bank_accounts": [
            views.CustomerExternalBankAccount(
                external_bank_account_id=account.external_account_id,
                bank_name=account.bank_name,
                account_number=account.number_last_four,
                primary=account.primary,
            )
            for account in file.external_accounts
            if account.external_account_id is not None
        ],
        "created_at": file.customer.created_at,
        "updated_at": file.customer.updated_at,
    }


def _issues(file: CustomerFile) -> list[views.Issue]:
    issues = _issues_of(file.customer.verification, None)
    for person in file.persons:
        issues += _issues_of(person.verification, str(person.person_id))
    if file.customer.refused_by_provider:
        detail = " ".join(filter(None, (WOULD_NOT_TAKE, file.refusal)))
        issues.append(views.Issue(code=PROVIDER_REFUSED, detail=detail, person_id=None))
    return issues


def _issues_of(verification: Verification | None, person_id: str | None) -> list[views.Issue]:
    if verification is None or verification.status is CustomerStatus.CANCELED:
        return []
    return [
        views.Issue(code=issue.code, detail=issue.detail, person_id=person_id)
        for issue in verification.issues
    ]


def _person(person: PersonRecord) -> views.PersonSummary:
    return views.PersonSummary(
        customer_id=str(person.person_id),
        first_name=person.first_name,
        last_name=person.last_name,
        status=person.status,
    )
