"""Account statements, the files behind them, and links by which a file can be fetched without a key."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from fpdf import FPDF
from increase import types as sdk
from increase.types import simulations as simulated

from tests.support.increase_bank.calls import Call, Conduct, Done, Operation
from tests.support.increase_bank.errors import InvalidParameters
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.shapes import Json, microseconds, timestamp
from tests.support.increase_bank.store import Store

KIND, FILE, LINK = "account_statement", "file", "file_link"
NEW_YORK = ZoneInfo("America/New_York")
HOUR, DAY = 3600, 86_400
CONTENTS_SECONDS = 600
MOST_LINES = 1_000
SUM_BEFORE = "SELECT coalesce(sum(amount), 0) FROM posting WHERE account_id = ? AND created < ?"
NUMBER = """
SELECT substr(json_extract(body, '$.account_number'), -4) FROM object
WHERE account_id = ? AND kind = 'account_number' ORDER BY seq LIMIT 1
"""
LINES = """
SELECT created, description, amount FROM posting
WHERE account_id = ? AND created >= ? AND created < ? ORDER BY created, seq LIMIT ?
"""


def make_statement(store: Store, account_id: str, year: int, month: int) -> str:
    """The statement of a month in New York; its id. Raises ObjectNotFound."""
    store.text("account", account_id)
    first = datetime(year, month, 1, tzinfo=NEW_YORK)
    following = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=NEW_YORK)
    start, end = _moment(first), _moment(following)
    file_id = new_id(FILE)
    store.put(
        {
            "id": file_id,
            "type": FILE,
            "description": f"{year}-{month:02} statement",
            "direction": "from_increase",
            "filename": "statement.pdf",
            "mime_type": "application/pdf",
            "purpose": "increase_statement",
        },
        {
            "secret": secrets.token_hex(16),
            "account_id": account_id,
            "start": start,
            "end": end,
            "title": f"{year}-{month:02}",
        },
    )
    statement = store.put(
        {
            "id": new_id(KIND),
            "type": KIND,
            "account_id": account_id,
            "starting_balance": _sum(store, account_id, start),
            "ending_balance": _sum(store, account_id, end),
            "file_id": file_id,
            "loan": None,
            "statement_period_start": timestamp(start),
            "statement_period_end": timestamp(end - 1_000_000),
        }
    )
    return str(statement["id"])


def _moment(day: datetime) -> int:
    return microseconds(day.astimezone(UTC).isoformat())


def _sum(store: Store, account_id: str, before: int) -> int:
    row = store.row(SUM_BEFORE, (account_id, before))
    return 0 if row is None else int(row[0])


def simulate_statement(call: Call) -> Done:
    today = datetime.now(NEW_YORK)
    made = make_statement(call.store, call.body["account_id"], today.year, today.month)
    return Done(KIND, made)


def create_link(call: Call) -> Done:
    file_id, now = call.body["file_id"], int(time.time())
    call.store.text(FILE, file_id)
    expires = now + HOUR
    if "expires_at" in call.body:
        expires = microseconds(call.body["expires_at"]) // 1_000_000
        if not now < expires <= now + DAY:
            raise InvalidParameters.of("expires_at", "must be within a day from now")
    link = call.store.put(
        {
            "id": new_id(LINK),
            "type": LINK,
            "expires_at": timestamp(expires * 1_000_000),
            "file_id": file_id,
            "idempotency_key": call.key,
            "unauthenticated_url": signed_url(call.store, call.conduct, file_id, expires),
        },
        event=False,
    )
    return Done(LINK, link["id"])


def signed_url(store: Store, conduct: Conduct, file_id: str, expires: int) -> str:
    signature = _signature(store, file_id, expires)
    return f"{conduct.public_url}/downloads/{file_id}?expires={expires}&signature={signature}"


def contents_url(store: Store, conduct: Conduct, file_id: str) -> str:
    """Where the contents of a file can be fetched for ten minutes. Raises ObjectNotFound."""
    store.text(FILE, file_id)
    return signed_url(store, conduct, file_id, int(time.time()) + CONTENTS_SECONDS)


def _signature(store: Store, file_id: str, expires: int) -> str:
    secret = str(store.private(file_id).get("secret", ""))
    return hmac.new(secret.encode(), f"{file_id}:{expires}".encode(), hashlib.sha256).hexdigest()


def download(store: Store, file_id: str, expires: str, signature: str) -> bytes | None:
    """The document; None when the link is altered or late."""
    hidden = store.private(file_id)
    if not hidden or not expires.isdecimal() or int(expires) < time.time():
        return None
    if not hmac.compare_digest(_signature(store, file_id, int(expires)), signature):
        return None
    return _document(store, hidden)


def _document(store: Store, hidden: Json) -> bytes:
    account_id, start, end = hidden["account_id"], hidden["start"], hidden["end"]
    document = FPDF()
    document.set_creation_date(datetime(2000, 1, 1, tzinfo=UTC))
    document.add_page()
    document.set_font("Helvetica", size=9)
    balance = _sum(store, account_id, start)
    lines = [
        f"Statement {hidden['title']} of {account_id}",
        f"Account number {_masked_number(store, account_id)}",
        f"Starting balance on {_day(start)} {_money(balance)}",
    ]
    for created, description, amount in store.rows(LINES, (account_id, start, end, MOST_LINES)):
        day = datetime.fromtimestamp(created / 1_000_000, NEW_YORK)
        lines.append(f"{day:%m/%d}  {description[:80]}  {_money(amount)}")
    lines.append(f"Ending balance on {_day(end)} {_money(_sum(store, account_id, end))}")
    for line in lines:
        text = line.encode("latin-1", "replace").decode("latin-1")
        document.cell(0, 5, text, new_x="LMARGIN", new_y="NEXT")
    return bytes(document.output())


def _masked_number(store: Store, account_id: str) -> str:
    row = store.row(NUMBER, (account_id,))
    return "of none" if row is None else f"*{row[0]}"


def _day(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment / 1_000_000, NEW_YORK):%m/%d/%Y}"


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _list(kind: str, call: Call) -> str:
    return page(call.store, objects(kind), call.query, call.conduct.page_limit)


OPERATIONS = (
    Operation(
        "GET", "/account_statements", sdk.AccountStatementListParams, lambda call: _list(KIND, call)
    ),
    Operation("GET", "/account_statements/{id}", None, lambda call: call.store.text(KIND, call.id)),
    Operation("POST", "/file_links", sdk.FileLinkCreateParams, create_link, reader=True),
    Operation("GET", "/files", sdk.FileListParams, lambda call: _list(FILE, call)),
    Operation("GET", "/files/{id}", None, lambda call: call.store.text(FILE, call.id)),
    Operation(
        "POST",
        "/simulations/account_statements",
        simulated.AccountStatementCreateParams,
        simulate_statement,
    ),
)
