"""What the bank makes of an entity's data: decided by numbers and addresses, so that tests can choose.

The last four digits of the corporation's legal identifier, or of an owner's identification number:

| digits | validation |
|---|---|
| `0001` | `invalid`; the entity is created `archived`. A change to such a number is refused |
| `0002` | `pending`, until it is decided |
| `0003` | `invalid`: `entity_tax_identifier`, or `beneficial_owner_identity` |
| others | `valid` |

An address whose first line is a post office box is `invalid`: `entity_address` or `beneficial_owner_address`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from tests.support.increase_bank.shapes import Json

DENIED, UNDECIDED, DOUBTFUL = "0001", "0002", "0003"
BOX = re.compile(r"(p\.?\s*o\.?\s*box|pmb)\b", re.IGNORECASE)
Verdict = Literal["pending", "valid", "invalid"]


def validation(corporation: Mapping[str, Any], numbers: Mapping[str, str]) -> Json:
    """The entity's `validation`. `numbers` are the owners' identification numbers by the owners' ids."""
    issues: list[Json] = []
    legal = corporation["legal_identifier"]["value"]
    if legal.endswith((DENIED, DOUBTFUL)):
        issues.append(issue("entity_tax_identifier"))
    if BOX.match(corporation["address"]["line1"]):
        issues.append(issue("entity_address"))
    for owner in corporation["beneficial_owners"]:
        if numbers.get(owner["id"], "").endswith((DENIED, DOUBTFUL)):
            issues.append(issue("beneficial_owner_identity", owner["id"]))
        if BOX.match(owner["individual"]["address"]["line1"]):
            issues.append(issue("beneficial_owner_address", owner["id"]))
    if issues:
        return {"status": "invalid", "issues": issues}
    undecided = any(number.endswith(UNDECIDED) for number in (legal, *numbers.values()))
    return {"status": "pending" if undecided else "valid", "issues": []}


def is_denied(*numbers: str) -> bool:
    return any(number.endswith(DENIED) for number in numbers)


def issue(category: str, owner_id: str | None = None) -> Json:
    details: Json = {"reason": "mailbox_address"} if category.endswith("_address") else {}
    if owner_id is not None:
        details["beneficial_owner_id"] = owner_id
    return {"category": category, category: details}
