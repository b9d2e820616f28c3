"""Descriptions of fields that mean the same wherever they stand."""

from __future__ import annotations

BY_NAME: dict[str, str] = {
    "account_id": "The account's id at core banking.",
    "created_at": "When it was made, in UTC.",
}
"""By name, for fields that have no docstring."""
