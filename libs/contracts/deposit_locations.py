"""Deposit locations: the program banks that hold an account's swept deposits."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Literal

from libs.contracts import fields as f
from libs.contracts.model import Command, Model


class ListDepositLocations(Command):
    """List the program banks that hold an account's swept deposits, by `location_id`. The balances of a load add up to
    what was swept from the account. Ask for further pages with `load_date` set to the first page's `as_of_date`:
    without it each page is of the load that is the latest then.
    """

    account_id: str
    page: f.Page = 1
    limit: f.Limit = 50
    load_date: f.CalendarDate | None = None
    """The day of the load; the latest load when it is not given."""


class DepositLocation(Model):
    """A program bank that holds deposits of an account."""

    location_id: int
    """The program bank's id."""
    name: str
    """The program bank's name."""
    city_and_state: str
    """Where it is: `Portland, ME`."""
    balance: Decimal
    """What it holds of the account, in US dollars."""


class DepositLocationsEventData(Model):
    """A load: of which day, over how many banks, how much in all."""

    object: Literal["deposit_locations"] = "deposit_locations"
    account_id: str
    customer_id: str
    as_of_date: date
    """The day of the load."""
    locations: int
    """How many program banks there are."""
    balance: Decimal
    """What they hold in all, in US dollars."""
