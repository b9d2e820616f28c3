"""Ids in groups of what one question may carry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from libs.contracts.reconciliation import MAX_IDS


def chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    """Each id once, at most `MAX_IDS` at a time: the limit of our services and of the providers' lists."""
    distinct = list(dict.fromkeys(ids))
    for start in range(0, len(distinct), MAX_IDS):
        yield distinct[start : start + MAX_IDS]
