"""The PDF of a statement: letterhead, summary, every transaction with the balance after it, page by page.

Lines are added in batches, oldest first; what it keeps is the pages' drawing commands, about 100 bytes a line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from services.provider_sandbox.calendar import NEW_YORK
from services.provider_sandbox.statements.lettering import written
from services.provider_sandbox.statements.sheet import (
    GREY,
    HAIRLINE,
    INK,
    NAVY,
    PAGES,
    PALE,
    TEAL,
    WHITE,
    Sheet,
)

BANK = "Quayside National Bank"
BANK_LINES = ("One Sandbox Pier, New York, NY 10004", "A simulated bank for development and tests")
NOTE = (
    "Days are days in New York. This statement comes from a simulated bank: the account holds no money,"
    " and nothing in it is insured."
)

LEFT, RIGHT = 18.0, 197.9
ABOUT_X, ABOUT_WIDTH = 114.0, 59.0
"""Where the account's facts begin, and how wide a fact may be: the longest period fits."""
TOP_BAND = 30.0
FOOT = 262.0
"""Below this (millimetres from the top) there is only the foot of the page."""
LOWEST_NOTE = 264.6
"""The note always has room below the closing balance: between the last row of a full page and the rule of its foot."""
ROW, LINE = 5.8, 3.6
"""The height of a row with one line of text, and of each line more."""
FIRST_PAGE_ROWS, PAGE_ROWS = 23, 41
"""Rows with one line of text that have room."""

DATE_X, NAME_X, KIND_X = LEFT + 2, LEFT + 20, LEFT + 88
DEBIT_X, CREDIT_X, BALANCE_X = LEFT + 126, LEFT + 150, RIGHT - 2
"""Where texts begin, and where amounts end."""
NAME_WIDTH = KIND_X - NAME_X - 3
NAME_LINES = 8
"""A name of 255 letters has room; what becomes longer when it is written in Latin letters is cut."""
AMOUNT_WIDTH, BALANCE_WIDTH = 22.0, 25.5

KINDS = {
    "deposit": "Deposit",
    "withdrawal": "Withdrawal",
    "wire": "Wire",
    "ach": "ACH",
    "fee": "Fee",
    "interest": "Interest",
    "return": "Return",
}


@dataclass(frozen=True)
class Facts:
    """What the statement says besides its lines."""

    statement_id: str
    generated_at: datetime
    start: date
    end: date
    holder: tuple[str, ...]
    """Name and address, as on an envelope."""
    account_title: str
    account_number: str
    opening: Decimal
    credits: Decimal
    debits: Decimal
    """Positive."""
    credit_count: int
    debit_count: int

    @property
    def closing(self) -> Decimal:
        return self.opening + self.credits - self.debits


@dataclass(frozen=True)
class Line:
    settled_at: datetime
    counterparty_name: str
    type: str
    amount: Decimal
    """Signed: positive raises the account."""


class StatementDocument(Sheet):
    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts
        self._balance = facts.opening
        self._shaded = False
        self.set_title(f"Statement {_day(facts.start)} to {_day(facts.end)}")
        self.set_author(BANK)
        self.set_lang("en-US")
        self.set_creation_date(facts.generated_at)
        self.add_page()
        self._marker(f"Opening balance on {_day(facts.start)}", facts.opening)

    def add_lines(self, lines: Iterable[Line]) -> None:
        for line in lines:
            self._add(line)

    def finish(self) -> bytes:
        """Close the books: the closing balance, the note, the file."""
        facts = self._facts
        assert self._balance == facts.closing, "the lines are not those that the facts count"
        self._marker(f"Closing balance on {_day(facts.end)}", facts.closing)
        self.use_font("", 7)
        self.put(LEFT, min(self.y + 7, LOWEST_NOTE), NOTE, GREY)
        return bytes(self.output())

    # What FPDF calls at each page's beginning and end.

    def header(self) -> None:
        if self.page == 1:
            self._letterhead()
            self._envelope()
            self._summary()
        else:
            self._running_head()
        self._table_head()

    def footer(self) -> None:
        self.rule(LEFT, RIGHT, 266.5, HAIRLINE)
        self.use_font("", 7)
        self.put(LEFT, 270.5, f"{BANK}  ·  Statement {self._facts.statement_id}", GREY)
        # How many pages there are is known at the end: here is the room that it takes, to the digit.
        facts = self._facts
        rest = facts.credit_count + facts.debit_count - FIRST_PAGE_ROWS
        x = RIGHT - self.width_of(str(1 + max(0, -(-rest // PAGE_ROWS))))
        self.put_right(x, 270.5, f"Page {self.page} of ", GREY)
        self.set_xy(x, 268.46)
        self.cell(h=2.6, text=PAGES)

    # The parts of a page.

    def _letterhead(self) -> None:
        self.box(0, 0, self.w, TOP_BAND, NAVY)
        self.box(0, TOP_BAND, self.w, 1.1, TEAL)
        self._emblem(LEFT, 9.2)
        self.use_font("B", 15)
        self.put(LEFT + 16, 15.6, BANK, WHITE)
        self.use_font("", 7.5)
        self.put(LEFT + 16, 20.6, "  ·  ".join(BANK_LINES), HAIRLINE)
        self.use_font("B", 11)
        self.put_right(RIGHT, 15.6, "Account statement", WHITE)
        self.use_font("", 7.5)
        self.put_right(RIGHT, 20.6, self._period(), HAIRLINE)

    def _emblem(self, x: float, y: float) -> None:
        """A quay: four piles under a deck, and the water."""
        self.box(x, y, 11, 2, WHITE)
        for pile in range(4):
            self.box(x + 0.6 + pile * 2.8, y + 2.8, 1.4, 6, WHITE)
        self.box(x, y + 9.6, 11, 1.3, TEAL)

    def _envelope(self) -> None:
        facts = self._facts
        self.use_font("B", 10)
        y = 45.0
        for index, line in enumerate(facts.holder[:6]):
            # The name may take two lines; what follows one each, so that all stays above the summary.
            parts = (
                self.wrapped(written(line), 92, 2)
                if index == 0
                else [self.shortened(written(line), 92)]
            )
            for part in parts:
                self.put(LEFT, y, part, INK)
                y += 4.6
            if index == 0:
                self.use_font("", 9.5)
        about = (
            ("Account", facts.account_title),
            ("Account number", facts.account_number),
            ("Statement period", self._period()),
            ("Available since", _day(facts.generated_at.astimezone(NEW_YORK).date())),
        )
        for row, (label, value) in enumerate(about):
            self.use_font("", 8)
            self.put(ABOUT_X, 45 + row * 5.4, label, GREY)
            self.use_font("B", 8)
            fact = self.shortened(written(value), ABOUT_WIDTH)
            self.put_right(RIGHT, 45 + row * 5.4, fact, INK)
            self.rule(ABOUT_X, RIGHT, 46.8 + row * 5.4, HAIRLINE)

    def _summary(self) -> None:
        facts = self._facts
        tiles = (
            ("Opening balance", facts.opening, "", NAVY),
            ("Money in", facts.credits, _counted(facts.credit_count), TEAL),
            ("Money out", -facts.debits, _counted(facts.debit_count), NAVY),
            ("Closing balance", facts.closing, "", NAVY),
        )
        width = (RIGHT - LEFT - 9) / 4
        for index, (label, amount, below, accent) in enumerate(tiles):
            x, y = LEFT + index * (width + 3), 77.0
            self.box(x, y, width, 20, PALE)
            self.box(x, y, width, 0.8, accent)
            self.use_font("", 8)
            self.put(x + 3.5, y + 6.2, label, GREY)
            self.use_font("B", 12.5)
            self.fit(_dollars(amount), width - 7)
            self.put(x + 3.5, y + 12.6, _dollars(amount), accent)
            self.use_font("", 7)
            self.put(x + 3.5, y + 17.2, below, GREY)
        self.use_font("B", 11)
        self.put(LEFT, 107.5, "Transactions", NAVY)
        self.y = 110.5

    def _running_head(self) -> None:
        self.box(0, 0, self.w, 2.2, NAVY)
        self.use_font("B", 9)
        self.put(LEFT, 12, BANK, NAVY)
        self.use_font("", 8)
        number = f"Account {self._facts.account_number}"
        self.put_right(RIGHT, 12, f"{number}  ·  {self._period()}", GREY)
        self.y = 16.5

    def _table_head(self) -> None:
        y = self.y
        self.box(LEFT, y, RIGHT - LEFT, 6.6, NAVY)
        self.use_font("B", 7.5)
        for x, name in ((DATE_X, "Date"), (NAME_X, "Description"), (KIND_X, "Type")):
            self.put(x, y + 4.35, name, WHITE)
        for x, name in ((DEBIT_X, "Debit"), (CREDIT_X, "Credit"), (BALANCE_X, "Balance")):
            self.put_right(x, y + 4.35, name, WHITE)
        self.y = y + 6.6
        self._shaded = False

    def _marker(self, text: str, balance: Decimal) -> None:
        """A row for the balance at an end of the period."""
        self._make_room(ROW + 0.4)
        y = self.y
        self.use_font("B", 8)
        self.put(DATE_X, y + 4, text, NAVY)
        self.put_amount(BALANCE_X, y + 4, balance, BALANCE_WIDTH, NAVY)
        self.rule(LEFT, RIGHT, y + ROW + 0.2, NAVY)
        self.y = y + ROW + 0.4

    def _add(self, line: Line) -> None:
        self.use_font("", 8)
        name = self.wrapped(written(line.counterparty_name), NAME_WIDTH, NAME_LINES)
        height = ROW + LINE * (len(name) - 1)
        self._make_room(height)
        self.use_font("", 8)
        self._balance += line.amount
        y = self.y
        if self._shaded:
            self.box(LEFT, y, RIGHT - LEFT, height, PALE)
        self._shaded = not self._shaded
        base = y + 4
        self.put(DATE_X, base, _short_day(line.settled_at.astimezone(NEW_YORK)), GREY)
        for index, part in enumerate(name):
            self.put(NAME_X, base + index * LINE, part, INK)
        self.put(KIND_X, base, KINDS.get(line.type, line.type), GREY)
        if line.amount < 0:
            self.put_amount(DEBIT_X, base, -line.amount, AMOUNT_WIDTH, INK)
        else:
            self.put_amount(CREDIT_X, base, line.amount, AMOUNT_WIDTH, TEAL)
        self.put_amount(BALANCE_X, base, self._balance, BALANCE_WIDTH, INK)
        self.y = y + height

    def _make_room(self, height: float) -> None:
        if self.y + height > FOOT:
            self.add_page()

    def _period(self) -> str:
        return f"{_day(self._facts.start)} to {_day(self._facts.end)}"


def _day(day: date) -> str:
    return f"{day:%B} {day.day}, {day.year}"


def _short_day(day: date) -> str:
    return f"{day:%b} {day.day:02}"


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}".replace("$-", "-$")


def _counted(count: int) -> str:
    return "1 transaction" if count == 1 else f"{count:,} transactions"
