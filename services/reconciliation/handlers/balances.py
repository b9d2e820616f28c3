"""Each account's balance against the sum of its postings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from services.reconciliation.handlers.books import Books
from services.reconciliation.handlers.comparison import Scan, suspects
from services.reconciliation.models import IN_FLIGHT, Difference, Finding, Scanned
from services.reconciliation.ports import Balance, ProviderList
from services.reconciliation.repository.postings import Posted

READINGS = 4
"""How often both are read anew when a posting came between them. After that the account counts as in flight."""


class BalanceComparison:
    """Keys are account ids."""

    name = "balances"
    starts_anew = frozenset({"postings"})

    def __init__(self, books: Books, balances: ProviderList[Balance], *, page_size: int) -> None:
        self._books = books
        self._balances = balances
        self._page_size = page_size

    @property
    def scans(self) -> Mapping[str, Scan]:
        return {"postings": self._postings, "theirs": self._theirs, "ours": self._ours}

    async def _postings(self, _: str | None, deadline: float) -> Scanned:
        """Add what was posted since the last run, page by page: the sums remember how far they are.

        A page that is not full ends the scan: under steady postings no page would ever be empty.
        """
        added = (await self._books.add_page(deadline)).postings
        return Scanned(added, [], "more" if added >= self._page_size else None)

    async def _theirs(self, after: str | None, deadline: float) -> Scanned:
        page = await self._balances.page(after, deadline)
        ids = [balance.account_id for balance in page.rows]
        posted = await self._books.posted(ids)
        findings = {one.account_id: judge(posted.get(one.account_id), one) for one in page.rows}
        return Scanned(len(ids), suspects(findings), page.next_after)

    async def _ours(self, after: str | None, deadline: float) -> Scanned:
        """Sums of accounts that have no balance."""
        posted = await self._books.page_of_posted(after, self._page_size)
        ids = [one.account_id for one in posted]
        known = {balance.account_id for balance in await self._balances.by_ids(ids, deadline)}
        more = len(ids) == self._page_size
        return Scanned(
            len(ids), [one for one in ids if one not in known], ids[-1] if more else None
        )

    async def look(self, keys: Sequence[str], deadline: float) -> Mapping[str, Finding]:
        findings: dict[str, Finding] = dict.fromkeys(keys, IN_FLIGHT)
        for _ in range(READINGS):
            left = [key for key, finding in findings.items() if finding is IN_FLIGHT]
            if not left:
                break
            posted, read_to = await self._books.posted_by_now(left, deadline)
            # Read after the sums, so that a balance as of an earlier posting means that the provider went back.
            balances = {one.account_id: one for one in await self._balances.by_ids(left, deadline)}
            findings |= {
                key: judge(posted.get(key), balances.get(key), read_to=read_to) for key in left
            }
        return findings


def judge(posted: Posted | None, balance: Balance | None, *, read_to: int = 0) -> Finding:
    """Compared as of the same posting. A balance that contains later postings than the sum is in flight.

    Args:
        read_to: the position up to which all accounts' postings are in their sums. A balance as of a later posting than
            its sum's, and not a later one than this, is of a provider that was restored: it numbers new postings from
            below our bookmark, which skips them.
    """
    if balance is None:
        if posted is None:
            return []
        ids = {"account_id": posted.account_id}
        return [Difference("balance_missing", posted.account_id, ids, _sum(posted), None, {})]
    known = posted or Posted(balance.account_id, Decimal(0), 0)
    if balance.as_of_position > max(known.last_position, read_to):
        return IN_FLIGHT
    ids = {"account_id": balance.account_id}
    # What an account that is posted to holds moves on between two looks. By how much it is off does not, unless the
    # provider makes the same mistake with each posting.
    facts: dict[str, str]
    if balance.as_of_position != known.last_position:
        kind, facts = "postings_went_back", {}
    elif balance.total != known.total or balance.available != balance.total - balance.held:
        kind = "balance"
        facts = {
            "total_off_by": _exact(balance.total - known.total),
            "available_off_by": _exact(balance.available + balance.held - balance.total),
        }
    else:
        return []
    return [
        Difference(
            kind, balance.account_id, ids, _sum(known), _balance(balance), facts, drifts=bool(facts)
        )
    ]


def _exact(amount: Decimal) -> str:
    """The same text for equal amounts, however many zeros they were sent with."""
    return format(amount.normalize() + 0, "f")


def _sum(posted: Posted) -> dict[str, object]:
    return {"posted": posted.total, "last_position": posted.last_position}


def _balance(balance: Balance) -> dict[str, object]:
    return {
        "total": balance.total,
        "available": balance.available,
        "held": balance.held,
        "as_of_position": balance.as_of_position,
    }
