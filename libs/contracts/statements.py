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
    """`start_date` and `end_date` find the statements whose periods overlap them."""

    account_id: str
    statement_id: f.FilterId | None = None
    start_date: f.CalendarDate | None = None
    end_date: f.CalendarDate | None = None

    @classmethod
    def broken_rules(cls, values: Mapping[str, Any]) -> list[BrokenRule]:
        return broken_period(values)


class StatementFormat(Model):
    format: Literal["pdf"]
    url: Annotated[
        str, Field(description="Downloads the document without credentials until it expires")
    ]
    url_expires_at: f.UtcDateTime


class StatementPeriod(Model):
    statement_id: f.UuidText
    start_date: date
    end_date: date
    year: int
    month: Annotated[int, Field(ge=1, le=12)]
    generated_at: f.UtcDateTime


class Statement(StatementPeriod):
    formats: StatementFormat


class StatementEventData(StatementPeriod):
    """As `Statement` without the URL, which would have expired before many a delivery."""

    object: str = "statement"
    account_id: str
    customer_id: str
