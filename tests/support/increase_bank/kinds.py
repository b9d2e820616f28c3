"""The kinds of objects that the bank keeps, and the SDK's model of each."""

from __future__ import annotations

import secrets
from typing import get_args

from increase import BaseModel as SdkModel
from increase import types as sdk
from increase.types.entity import ValidationIssue
from increase.types.event import Event

MODELS: dict[str, type[SdkModel]] = {
    "account": sdk.Account,
    "account_number": sdk.AccountNumber,
    "account_statement": sdk.AccountStatement,
    "ach_transfer": sdk.ACHTransfer,
    "entity": sdk.Entity,
    "entity_beneficial_owner": sdk.EntityBeneficialOwner,
    "external_account": sdk.ExternalAccount,
    "file": sdk.File,
    "file_link": sdk.FileLink,
    "group": sdk.Group,
    "inbound_ach_transfer": sdk.InboundACHTransfer,
    "inbound_wire_transfer": sdk.InboundWireTransfer,
    "intrafi_account_enrollment": sdk.IntrafiAccountEnrollment,
    "pending_transaction": sdk.PendingTransaction,
    "program": sdk.Program,
    "wire_transfer": sdk.WireTransfer,
}
"""By the object's `type`, which is also in front of its ids."""
ID_PREFIX = ""
"""In front of each id. Increase may change it at any time, and has `sandbox_` there at its sandbox. Tests set it."""

EVENT_CATEGORIES: frozenset[str] = frozenset(get_args(Event.model_fields["category"].annotation))
ISSUE_CATEGORIES: frozenset[str] = frozenset(
    get_args(ValidationIssue.model_fields["category"].annotation)
)
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(kind: str, characters: int = 20) -> str:
    return f"{ID_PREFIX}{kind}_{''.join(secrets.choice(_LETTERS) for _ in range(characters))}"


def kind_of(object_id: str) -> str:
    """The kind that the id names; what is before the last underscore if it names none."""
    return object_id.removeprefix(ID_PREFIX).rpartition("_")[0]
