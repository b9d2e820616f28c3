"""Entries of the provider's feed as events: `TRANSLATIONS` has a row for each type that is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field

from libs.contracts.accounts import AccountEventData
from libs.contracts.ach import AchEventData
from libs.contracts.events import EVENT_TYPES
from libs.contracts.masking import masked
from libs.contracts.model import Model
from libs.contracts.statements import StatementEventData
from libs.contracts.transactions import TransactionEventData
from services.ledger_read.adapters.sandbox.financial_answers import (
    AccountAnswer,
    Answer,
    Instant,
    Text,
    read_answer,
)
from services.ledger_read.adapters.sandbox.ledger_answers import (
    AchRequestAnswer,
    LoadAnswer,
    PeriodAnswer,
    TransactionAnswer,
)
from services.ledger_read.models import ReportedEvent

OPERATION = "list_events"


class EntryAnswer(Answer):
    """The fields of every entry."""

    position: Annotated[int, Field(gt=0)]
    type: Text


class ReportedEntryAnswer(EntryAnswer):
    """The fields of every entry whose type is in `TRANSLATIONS`."""

    account_id: Text
    customer_id: Text
    occurred_at: Instant
    data: Any


DataT = TypeVar("DataT", bound=Answer)
Translation = Callable[[Any], ReportedEvent]


def _translation(
    shape: type[DataT],
    resource_id: Callable[[DataT, ReportedEntryAnswer], str],
    event_data: Callable[[DataT, ReportedEntryAnswer], Model],
) -> Translation:
    def translate(entry: Any) -> ReportedEvent:
        head = read_answer(OPERATION, ReportedEntryAnswer, entry)
        data = read_answer(f"{OPERATION} {head.type}", shape, head.data)
        return ReportedEvent(
            event_type=EVENT_TYPES[head.type],
            customer_id=head.customer_id,
            resource_id=resource_id(data, head),
            occurred_at=head.occurred_at,
            data=event_data(data, head),
        )

    return translate


def _account_data(data: AccountAnswer, entry: ReportedEntryAnswer) -> AccountEventData:
    account = dict(data.to_account()) | {"account_number": masked(data.account_number)}
    return AccountEventData(**account, customer_id=entry.customer_id)


def _transaction_data(data: TransactionAnswer, entry: ReportedEntryAnswer) -> TransactionEventData:
    transaction = dict(data.to_transaction()) | {"account_number": masked(data.account_number)}
    return TransactionEventData(
        **transaction, account_id=data.account_id, customer_id=entry.customer_id
    )


_account = _translation(AccountAnswer, lambda data, _: data.account_id, _account_data)
_transaction = _translation(
    TransactionAnswer, lambda data, _: data.transaction_id, _transaction_data
)
_ach = _translation(
    AchRequestAnswer,
    lambda data, _: data.reference_id,
    lambda data, entry: AchEventData(**dict(data.to_ach_request()), customer_id=entry.customer_id),
)
_statement = _translation(
    PeriodAnswer,
    lambda data, _: data.statement_id,
    lambda data, entry: StatementEventData(
        **dict(data.to_period()), account_id=data.account_id, customer_id=entry.customer_id
    ),
)
_load = _translation(
    LoadAnswer,
    lambda _, entry: entry.account_id,
    lambda data, entry: data.to_event_data(entry.account_id, entry.customer_id),
)

TRANSLATIONS: dict[str, Translation] = {
    "account.opened": _account,
    "account.restricted": _account,
    "account.unrestricted": _account,
    "account.closed": _account,
    "transaction.created": _transaction,
    "ach.created": _ach,
    "ach.submitted": _ach,
    "ach.settled": _ach,
    "ach.returned": _ach,
    "statement.available": _statement,
    "deposit_locations.updated": _load,
}
