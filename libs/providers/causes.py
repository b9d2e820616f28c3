"""The calls to a simulated bank that cause each type of event.

libs/providers/<company>/causes.py    `CAUSES`, by types of events
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from libs.providers.companies import DEFAULT


@dataclass(frozen=True, slots=True)
class Cause:
    """A POST to the simulated bank. `of` names the id that it is about; `path` has it as `{id}`, or `body` takes it."""

    of: str
    path: str
    body: Callable[[str], dict[str, Any] | None] = lambda _: None


def causes() -> Mapping[str, Cause]:
    """Of the simulated bank, by the types of events that it can cause."""
    found: Mapping[str, Cause] = import_module(f"libs.providers.{DEFAULT}.causes").CAUSES
    return found
