"""Statements: an account's month, as a document behind a signed URL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field

from libs.contracts import fields as f
from libs.contracts.model import BrokenRule, Command, Model
from libs.contracts.periods import broken_period


class ListStatements(Command):
    """List an account's statements, newest first, each with a download URL that is signed and expires."""

    account_id: str
    statement_id: f.ResourceId | None = None
    """Only this statement."""
    start_date: f.CalendarDate | None = None
    """Only statements whose period ends on this day or later."""
    end_date: f.CalendarDate | None = None
    """Only statements whose period begins on this day or earlier."""

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class StatementFormat(Model):
    """The document of a statement."""

    format: Literal["pdf"]
    """The format of the document."""
    url: Annotated[
        str,
        Field(
            description="Downloads the document without credentials until it expires", repr=False
        ),
    ]
    url_expires_at: f.UtcDateTime
    """When the URL stops working: list again for a new one."""


class StatementPeriod(Model):
    statement_id: f.UuidText
    """The statement's id."""
    start_date: date
    """The first day of its period."""
    end_date: date
    """The last day of its period."""
    year: int
    """The year of its period."""
    month: Annotated[int, Field(ge=1, le=12)]
    """The month of its period."""
    generated_at: f.UtcDateTime
    """When it was made."""


class Statement(StatementPeriod):
    """A statement."""

    formats: StatementFormat
    """Its document."""


class StatementEventData(StatementPeriod):
    """As `Statement` without the URL, which would have expired before many a delivery."""

    object: Literal["statement"] = "statement"
    account_id: str
    customer_id: str
