"""Ids as services make them."""

from __future__ import annotations

from uuid import UUID

from uuid_utils import uuid7


def made_id() -> UUID:
    return UUID(bytes=uuid7().bytes)
