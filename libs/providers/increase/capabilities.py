"""What Increase offers."""

from __future__ import annotations

from dataclasses import replace

from libs.providers.capabilities import Lack, Lists, RoleCapabilities
from libs.providers.companies import Role
from libs.providers.writing import Capabilities

WRITES = Capabilities(keys_remembered_seconds=24 * 3600, longest_transit_seconds=60)
"""Increase does not say for how long it remembers a key. A day is what such interfaces remember at least. An object is
found by its key for ever. Refusals are not kept.
"""


def _of(writes: Capabilities | None, *lacks: Lack) -> RoleCapabilities:
    return RoleCapabilities(
        writes,
        changes=replace(writes, keys_remembered_seconds=None, takes_keys=False) if writes else None,
        keeps_refusals=False,
        lists=Lists.CURSORS,
        numbers_feed=False,
        lacks=lacks,
    )


CAPABILITIES = {
    Role.IDENTITY: _of(WRITES),
    Role.CORE: _of(
        WRITES,
        Lack(
            "a primary external account, and a customer of one", "both are in onboarding's tables"
        ),
        Lack(
            "a code of why a wire was refused, or was rejected later",
            "a refusal's reason is read off its accounts; a rejection has none but that",
        ),
    ),
    Role.FINANCIAL: _of(
        None,
        Lack("settlement calculations and reserve accounts", "`data` is null"),
        Lack(
            "page numbers, totals and filters of transactions", "the mirror in ledger_read has them"
        ),
        Lack(
            "postings of all accounts in the order of posting",
            "reconciliation compares no balances, debits of wires and deposit locations",
        ),
        Lack(
            "ACH requests of an account by page",
            "the list has up to 10,000; of an account with more the list is 502 with a detail, and each is found by its"
            " `reference_id`",
        ),
        Lack("deposit locations of earlier days", "only days on which they were read"),
        Lack("events of deposit locations", "`deposit_locations.updated` is never told"),
        Lack(
            "restrictions of an account",
            "`is_restricted` is false; `account.restricted` and `account.unrestricted` are never told",
        ),
        Lack("interest of the year", "summed from the account's interest payments"),
    ),
}
