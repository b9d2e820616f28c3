"""What a company offers in a role, as data: its adapters' promises about writes, and what operators are shown.

`libs/providers/<company>/capabilities.py` has `CAPABILITIES`, by role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module

from libs.providers.companies import Company, Role
from libs.providers.writing import Capabilities


class Lists(StrEnum):
    """How a company gives long lists out."""

    NUMBERED = "numbered"
    """Pages by their number, with the total."""
    CURSORS = "cursors"
    """One page after another, without a total."""


@dataclass(frozen=True, slots=True)
class Lack:
    """What the company does not have.

    Args:
        instead: what Bankside then answers or does.
    """

    what: str
    instead: str


@dataclass(frozen=True, slots=True)
class RoleCapabilities:
    """What a company's adapters can do in one role.

    Args:
        writes, changes: of what is created, and of its changes; None where services write nothing.
        keeps_refusals: a refusal is found under the key of its write.
        lists: of postings, or of the role's records where it has none.
        numbers_feed: the entries of its feed have positions; otherwise they are counted as they are applied.
    """

    writes: Capabilities | None
    changes: Capabilities | None
    keeps_refusals: bool
    lists: Lists
    numbers_feed: bool
    lacks: tuple[Lack, ...] = ()


def capabilities_of(company: Company) -> Mapping[Role, RoleCapabilities]:
    """Imports nothing of the company's but data."""
    module = import_module(f"libs.providers.{company}.capabilities")
    found: Mapping[Role, RoleCapabilities] = module.CAPABILITIES
    return found
