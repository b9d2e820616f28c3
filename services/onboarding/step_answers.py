"""What a provider answers to each step of a saga.

`Saga` checks each step against this table, by which an answer given by an operator is read as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from libs.providers.companies import Role
from services.onboarding.models import Verification
from services.onboarding.ports import Closed, CoreCustomer, LinkedAccount, OpenedAccount

ANSWERS: dict[str, type[msgspec.Struct]] = {
    "verify_business": Verification,
    "verify_person": Verification,
    "create_core_business": CoreCustomer,
    "create_core_person": CoreCustomer,
    "link_external_account": LinkedAccount,
    "open_account": OpenedAccount,
    "update_identity": Verification,
    "update_core": CoreCustomer,
    "restore_identity": Verification,
    "add_external_account": LinkedAccount,
    "close_external_account": Closed,
    "close_core_person": Closed,
    "close_core_business": Closed,
    "cancel_identity_business": Verification,
    "cancel_identity_person": Verification,
}
"""By the step's name without its number."""
RECORD_IDS = ("identity_id", "core_id", "external_account_id", "account_id")
"""The fields of answers that have the id of the provider's record."""


def without_number(step: str) -> str:
    """`verify_person` of `verify_person.2`."""
    return step.partition(".")[0]


def role_of(step: str) -> Role:
    """Of the provider that carries the step out: only the identity provider answers with a verification."""
    return Role.IDENTITY if ANSWERS[without_number(step)] is Verification else Role.CORE


def record_ids_in(answer: Mapping[str, Any]) -> list[str]:
    """The ids of the provider's records in an answer, as JSON values."""
    return [answer[field] for field in RECORD_IDS if field in answer]
