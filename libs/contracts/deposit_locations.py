"""Deposit locations: the program banks that hold an account's swept deposits."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from libs.contracts import fields as f
from libs.contracts.model import Command, Model


class ListDepositLocations(Command):
    """The load of `load_date`; the latest when it is not given."""

    account_id: str
    page: f.Page = 1
    limit: f.Limit = 50
    load_date: f.CalendarDate | None = None


class DepositLocation(Model):
    location_id: int
    name: str
    city_and_state: str
    balance: Decimal


class DepositLocationsEventData(Model):
    """A load: of which day, over how many banks, how much in all."""

    object: str = "deposit_locations"
    account_id: str
    customer_id: str
    as_of_date: date
    locations: int
    balance: Decimal
