"""The OpenAPI document of partners and customers as it was released last: `python -m libs.specs.release` writes it, as
a step of each release.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from libs.contracts.exact_json import encode
from libs.specs.openapi import openapi_document

FILE = Path(__file__).parent / "released" / "openapi.json"
PROSE = frozenset(
    {"description", "summary", "example", "examples", "x-enum-varnames", "x-sensitive"}
)


def released_document() -> dict[str, Any]:
    """The released document of partners and customers, without prose and examples."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def current_document() -> dict[str, Any]:
    """That of today, in the same form."""
    document: dict[str, Any] = without_prose(json.loads(encode(openapi_document())))
    return document


def without_prose(value: Any, *, named: bool = False) -> Any:
    """`named`: the keys are names of ours, such as a field `description`, rather than OpenAPI's."""
    if isinstance(value, list):
        return [without_prose(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_prose(item, named=key in {"properties", "schemas", "headers"} and not named)
        for key, item in value.items()
        if named or key not in PROSE
    }


def _lines(value: Any, depth: int = 3) -> str:
    """JSON with a line for each operation and each component, so that a diff shows which have changed."""
    if depth == 0 or not isinstance(value, dict) or not value:
        return json.dumps(value, sort_keys=True)
    members = (f"{json.dumps(key)}: {_lines(value[key], depth - 1)}" for key in sorted(value))
    return "{\n" + ",\n".join(members) + "\n}"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()

    FILE.write_text(_lines(current_document()) + "\n")
