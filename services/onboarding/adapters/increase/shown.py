"""Whether an entity or a beneficial owner shows a change already.

Of identification numbers Increase shows the last four digits, so that a change of one is never shown for certain: it is
sent again, which has no further effect. Where that is refused, an operator finds out whether the first one arrived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from increase.types import beneficial_owner_update_params as owner_update
from increase.types import entity_update_params as update

from libs.providers.increase.entities import Corporation, Owner


def corporation_shows(corporation: Corporation | None, told: update.Corporation) -> bool:
    return corporation is not None and _shows(msgspec.structs.asdict(corporation), told)


def is_shown(told: owner_update.BeneficialOwnerUpdateParams) -> bool:
    """Whether an owner shows for certain that it was changed so."""
    return "identification" not in told


def owner_shows(owner: Owner, told: owner_update.BeneficialOwnerUpdateParams) -> bool:
    if not is_shown(told):
        return False
    shown = {**msgspec.structs.asdict(owner.individual), "prongs": sorted(owner.prongs)}
    return _shows(shown, told)


def _shows(shown: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
    return all(_is(shown[name], value) for name, value in told.items())


def _is(shown: object, told: Any) -> bool:
    """An object that is told replaces the whole one: a field that it lacks is shown without a value."""
    if isinstance(shown, msgspec.Struct):
        return all(value == told.get(name) for name, value in msgspec.structs.asdict(shown).items())
    return bool(shown == (sorted(told) if isinstance(told, list) else told))
