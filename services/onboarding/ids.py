"""What a saga makes is named by the saga (`repository/sagas.py`), so that a second run finds it."""

from __future__ import annotations

from uuid import UUID, uuid5

DECISION = "onboarding.apply_decision"
"""The operation of the internal command by which a decision of the identity provider is applied."""


def derived(saga_id: UUID, name: str) -> UUID:
    """The id of something that the saga makes."""
    return uuid5(saga_id, name)
