"""The financial provider's answers as they are on the wire, validated once, and what they are in our words.

Strict, but for decimals and instants, which are text there. Fields that we do not know are left aside.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

import structlog
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from libs.contracts import accounts as contract
from libs.contracts.errors import ProviderError
from libs.contracts.masking import masked

LOGGED_MISTAKES = 5

_log = structlog.get_logger("financial")


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


Text = Annotated[str, StringConstraints(min_length=1)]
Amount = Annotated[Decimal, Field(strict=False, allow_inf_nan=False, max_digits=30)]
Instant = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_utc)]


class Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, hide_input_in_errors=True)


class CursorAnswer(Answer):
    """A page of a list whose next page is found by a cursor; null on the last."""

    next_cursor: Text | None

    @property
    @abstractmethod
    def rows(self) -> Sequence[Any]: ...


class AccountAnswer(Answer):
    account_id: Text
    account_number: Text
    account_group: Literal["deposit", "reserve"]
    account_title: Text
    name: Text
    dba_name: str | None
    status: Literal["pending", "open", "closed"]
    is_restricted: bool
    interest_earned_year_to_date: Amount
    annual_percentage_yield_earned: Amount
    closed_at: Instant | None

    def to_account(self) -> contract.Account:
        return contract.Account(
            id=self.account_id,
            account_number=self.account_number,
            account_group=self.account_group,
            account_title=self.account_title,
            name=self.name,
            dba_name=self.dba_name,
            status=self.status,
            interest_earned_year_to_date=self.interest_earned_year_to_date,
            annual_percentage_yield_earned=self.annual_percentage_yield_earned,
            is_restricted=self.is_restricted,
            close_date=self.closed_at,
        )


class AccountsAnswer(Answer):
    accounts: list[AccountAnswer]


class BalanceAnswer(Answer):
    account_id: Text
    account_number: Text
    available: Amount
    held: Amount
    total: Amount
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    as_of: Instant

    def to_balance(self) -> contract.Balance:
        def money(amount: Decimal) -> contract.Money:
            return contract.Money(amount=amount, currency=self.currency)

        return contract.Balance(
            account_id=self.account_id,
            account_number=self.account_number,
            available_balance=money(self.available),
            held_balance=money(self.held),
            total_balance=money(self.total),
            system_timestamp=self.as_of,
        )


class ExternalAccountAnswer(Answer):
    external_account_id: Text
    account_number: Text
    title: Text
    routing_number: Text
    institution_name: Text

    def to_external_account(self) -> contract.ExternalAccount:
        return contract.ExternalAccount(
            external_account_id=self.external_account_id,
            external_account_number=self.account_number,
            external_account_title=self.title,
            external_institution_aba=self.routing_number,
            external_institution_name=self.institution_name,
        )


class LinkedExternalAccountAnswer(Answer):
    external_account_id: Text
    bank_name: Text
    name_on_account: Text
    routing_number: Text
    account_number: Text
    primary: bool

    def to_linked(self) -> contract.LinkedExternalAccount:
        return contract.LinkedExternalAccount(
            external_account_id=self.external_account_id,
            bank_name=self.bank_name,
            name_on_account=self.name_on_account,
            routing_number=self.routing_number,
            account_number=masked(self.account_number),
            primary=self.primary,
        )


class LinkedExternalAccountsAnswer(CursorAnswer):
    external_accounts: list[LinkedExternalAccountAnswer]

    @property
    def rows(self) -> Sequence[LinkedExternalAccountAnswer]:
        return self.external_accounts


AnswerT = TypeVar("AnswerT", bound=Answer)


def read_answer(operation: str, shape: type[AnswerT], answer: Any) -> AnswerT:
    """`answer` as `shape`.

    Raises:
        ProviderError: it is not of that shape. What is wrong with it is logged, and noted on the error, by place and
            kind, never its content.
    """
    try:
        return shape.model_validate(answer)
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_context=False, include_input=False)
        _log.error(
            "provider_answer_broken",
            operation=operation,
            count=len(mistakes),
            mistakes=[{"loc": m["loc"], "type": m["type"]} for m in mistakes[:LOGGED_MISTAKES]],
        )
        broken = ProviderError()
        for mistake in mistakes[:LOGGED_MISTAKES]:
            broken.add_note(f"{'.'.join(map(str, mistake['loc']))} {mistake['type']}")
        raise broken from None
