"""The financial provider's answers about what is in an account's ledger, and what they are in our words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from libs.contracts import ach, deposit_locations, settlement, statements, transactions
from libs.contracts.fields import CalendarDate, UuidText
from services.ledger_read.adapters.sandbox.financial_answers import (
    Amount,
    Answer,
    CursorAnswer,
    Instant,
    Text,
)

Count = Annotated[int, Field(ge=0)]


class PageAnswer(Answer):
    """A page by number. `limit` is the size that the provider chose, perhaps not the one asked for."""

    total: Count
    page: Annotated[int, Field(ge=1)]
    limit: Annotated[int, Field(ge=1, le=10_000)]


class TransactionAnswer(Answer):
    transaction_id: Text
    account_id: Text
    account_number: Text
    account_group: Literal["deposit", "reserve"]
    type: transactions.TransactionType
    settled_at: Instant
    counterparty_name: str | None
    counterparty_id: str | None
    amount: Annotated[Amount, Field(ge=0)]
    direction: Literal["debit", "credit"]
    posting_id: UuidText

    def to_transaction(self) -> transactions.Transaction:
        return transactions.Transaction(
            transaction_id=self.transaction_id,
            account_number=self.account_number,
            account_group=self.account_group,
            type=self.type,
            settled_at=self.settled_at,
            counterparty_name=self.counterparty_name,
            counterparty_id=self.counterparty_id,
            amount=self.amount,
            debit_credit_flag=self.direction == "debit",
            tx_uuid=self.posting_id,
        )


class TransactionsAnswer(PageAnswer):
    transactions: list[TransactionAnswer]

    @property
    def rows(self) -> Sequence[TransactionAnswer]:
        return self.transactions


class PostingsAnswer(CursorAnswer):
    postings: list[TransactionAnswer]

    @property
    def rows(self) -> Sequence[TransactionAnswer]:
        return self.postings


class AchRequestAnswer(Answer):
    reference_id: Text
    originating_account_id: Text
    status: ach.AchStatus
    amount: ach.DecimalText
    return_code: str | None
    return_description: str | None
    created_at: Instant
    updated_at: Instant

    def to_ach_request(self) -> ach.AchRequest:
        return ach.AchRequest(**dict(self))


class AchRequestsAnswer(CursorAnswer):
    ach_requests: list[AchRequestAnswer]

    @property
    def rows(self) -> Sequence[AchRequestAnswer]:
        return self.ach_requests


class PeriodAnswer(Answer):
    """A statement without its document."""

    statement_id: UuidText
    account_id: Text
    start_date: CalendarDate
    end_date: CalendarDate
    year: int
    month: Annotated[int, Field(ge=1, le=12)]
    generated_at: Instant

    def to_period(self) -> statements.StatementPeriod:
        return statements.StatementPeriod(
            statement_id=self.statement_id,
            start_date=self.start_date,
            end_date=self.end_date,
            year=self.year,
            month=self.month,
            generated_at=self.generated_at,
        )


class StatementAnswer(PeriodAnswer):
    url: Text
    url_expires_at: Instant

    def to_statement(self) -> statements.Statement:
        return statements.Statement(
            **dict(self.to_period()),
            formats=statements.StatementFormat(
                format="pdf", url=self.url, url_expires_at=self.url_expires_at
            ),
        )


class StatementsAnswer(CursorAnswer):
    statements: list[StatementAnswer]

    @property
    def rows(self) -> Sequence[StatementAnswer]:
        return self.statements


class DepositLocationAnswer(Answer):
    location_id: int
    name: Text
    city: Text
    state: Text
    balance: Amount

    def to_deposit_location(self) -> deposit_locations.DepositLocation:
        return deposit_locations.DepositLocation(
            location_id=self.location_id,
            name=self.name,
            city_and_state=f"{self.city}, {self.state}",
            balance=self.balance,
        )


class DepositLocationsAnswer(PageAnswer):
    account_id: Text
    locations: list[DepositLocationAnswer]
    as_of_date: CalendarDate | None

    @property
    def rows(self) -> Sequence[DepositLocationAnswer]:
        return self.locations


class LoadAnswer(Answer):
    """A load in the feed."""

    as_of_date: CalendarDate
    locations: Count
    balance: Amount

    def to_event_data(
        self, account_id: str, customer_id: str
    ) -> deposit_locations.DepositLocationsEventData:
        return deposit_locations.DepositLocationsEventData(
            account_id=account_id,
            customer_id=customer_id,
            as_of_date=self.as_of_date,
            locations=self.locations,
            balance=self.balance,
        )


class SettlementCalculationAnswer(Answer):
    amount: settlement.SignedDecimalText
    ach_file: str | None
    created_at: Instant
    settlement_date: CalendarDate

    def to_calculation(self, reserve_account_number: str) -> settlement.SettlementCalculation:
        return settlement.SettlementCalculation(
            reserve_account_number=reserve_account_number,
            amount=self.amount,
            ach_file=self.ach_file,
            created_at=self.created_at,
            settlement_date=self.settlement_date,
        )


class SettlementCalculationsAnswer(CursorAnswer):
    account_id: Text
    reserve_account_number: Text | None
    calculations: list[SettlementCalculationAnswer]

    @property
    def rows(self) -> Sequence[SettlementCalculationAnswer]:
        return self.calculations

    @model_validator(mode="after")
    def _calculations_need_a_reserve_account(self) -> Self:
        if self.reserve_account_number is None and self.calculations:
            raise PydanticCustomError("no_reserve_account", "calculations without reserve account")
        return self
