"""The newest records that a provider has of ours, by which `persistence.continuity` notices a restored database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewestPage:
    """Ids of ours that a provider has, the newest first. `next`: where the following page begins, if any."""

    ids: Sequence[str]
    next: str | None


FetchNewest = Callable[[str | None, int], Awaitable[NewestPage]]
"""(after, limit) -> a page. Raises BanksideError: there is no usable answer."""
