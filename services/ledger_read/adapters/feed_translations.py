"""What the entries of the provider's feed mean: `TRANSLATIONS` has a row per type that becomes an event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field

from libs.contracts.accounts import AccountEventData
from libs.contracts.ach import AchEventData
from libs.contracts.events import EVENT_TYPES
from libs.contracts.model import Model
from libs.contracts.statements import StatementEventData
from libs.contracts.transactions import TransactionEventData
from services.ledger_read.adapters.financial_answers import (
    AccountAnswer,
    Answer,
    Instant,
    Text,
    last_four,
    read_answer,
)
from services.ledger_read.adapters.ledger_answers import (
    AchRequestAnswer,
    LoadAnswer,
    PeriodAnswer,
    TransactionAnswer,
)
from services.ledger_read.models import News

OPERATION = "list_events"


class EntryAnswer(Answer):
    """What every entry has, whatever its type."""

    position: Annotated[int, Field(gt=0)]
    type: Text


class NewsAnswer(EntryAnswer):
    """What every entry has whose type is known to us."""

    account_id: Text
    customer_id: Text
    occurred_at: Instant
    data: Any


DataT = TypeVar("DataT", bound=Answer)
Translation = Callable[[Any], News]


def _translation(
    shape: type[DataT],
    resource_id: Callable[[DataT, NewsAnswer], str],
    event_data: Callable[[DataT, NewsAnswer], Model],
) -> Translation:
    def translate(entry: Any) -> News:
        head = read_answer(OPERATION, NewsAnswer, entry)
        data = read_answer(f"{OPERATION} {head.type}", shape, head.data)
        return News(
            event_type=EVENT_TYPES[head.type],
            customer_id=head.customer_id,
            resource_id=resource_id(data, head),
            occurred_at=head.occurred_at,
            data=event_data(data, head),
        )

    return translate


def _account_data(data: AccountAnswer, entry: NewsAnswer) -> AccountEventData:
    account = dict(data.to_account()) | {"account_number": last_four(data.account_number)}
    return AccountEventData(**account, customer_id=entry.customer_id)


def _transaction_data(data: TransactionAnswer, entry: NewsAnswer) -> TransactionEventData:
    transaction = dict(data.to_transaction()) | {"account_number": last_four(data.account_number)}
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
