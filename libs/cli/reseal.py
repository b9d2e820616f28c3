"""`bankside keys reseal`: taking a key out of use."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from libs.cli.decisions import Flag, reason_of
from libs.cli.output import console, print_json
from libs.client.operator_client import ask
from libs.contracts.operating import resealing as contract
from libs.contracts.operating.resealing import ResealStep, Service

WALKS = 5
OF_ONE_SERVICE = ("_STORAGE_KEYS", "_LOOKUP_KEYS")
"""How the names of rings end that a service has to itself: what it sends is sealed by others."""
PAUSE_SECONDS = 0.5
"""Between two walks: a row that was passed over because it was locked is free by then, most often."""


def reseal(service: Service, *, reason: str, json: Flag = False) -> None:
    """Seal what a service has stored with the first keys of its rings, and say which keys are no longer used.

    The service goes on meanwhile. Put a new key in front of the ring first, and let every process of the services that
    have the ring read it. The command can be interrupted and begun again. It ends with 1 while an old key is used.

    Such as `bankside keys reseal onboarding --reason "the old key is retired"`.

    Args:
        service: Whose rows.
        reason: Why, such as which key goes out of use.
        json: Print one JSON document.
    """
    done = _Walk()
    sealed_anew: Counter[str] = Counter()
    for number in range(WALKS):
        time.sleep(number and PAUSE_SECONDS)
        done = _walk(service, reason_of(reason), sealed_anew)
        if not done.passed_over:
            break
    in_use = {ring: _old_keys(ring, ids, done) for ring, ids in sorted(done.rings.items())}
    if json:
        print_json(
            {"sealed_anew": dict(sealed_anew), "unopened": +done.unopened, "old_keys": in_use}
        )
    else:
        _show(sealed_anew, done, in_use)
    if any(values for old in in_use.values() for values in old.values()) or done.unopened.total():
        raise SystemExit(1)


@dataclass
class _Walk:
    """Once over all columns: what is stored now, by ring and key; what no key opens, by column."""

    values: Counter[tuple[str, str]] = field(default_factory=Counter)
    unopened: Counter[str] = field(default_factory=Counter)
    passed_over: int = 0
    rings: dict[str, list[str]] = field(default_factory=dict)


def _walk(service: Service, reason: str, sealed_anew: Counter[str]) -> _Walk:
    walk, after = _Walk(), None
    while True:
        step: ResealStep = ask(
            contract.RESEAL, contract.ResealService(service=service, reason=reason, after=after)
        )
        for use in step.keys:
            walk.values[use.ring, use.key_id] += use.values
        if step.part is not None:
            sealed_anew[step.part] += step.rows
            walk.unopened[step.part] += step.unopened
        walk.passed_over += step.passed_over
        walk.rings = step.rings
        after = step.next
        if after is None:
            return walk


def _old_keys(ring: str, key_ids: list[str], done: _Walk) -> dict[str, int]:
    """The values that need each key but the first; also keys that are on the ring no more."""
    first, *old = key_ids
    found = {key_id for name, key_id in done.values if name == ring and key_id != first}
    return {key_id: done.values[ring, key_id] for key_id in sorted({*old, *found})}


def _show(sealed_anew: Counter[str], done: _Walk, in_use: dict[str, dict[str, int]]) -> None:
    for column, rows in sealed_anew.items():
        console().print(f"{column}: {rows} rows sealed anew")
        if done.unopened[column]:
            console().print(
                f"  {done.unopened[column]} values open with no key of their ring: put back the one that sealed them."
            )
    for ring, old in in_use.items():
        for key_id, values in old.items():
            key = f"the key {key_id}" if key_id else "the key without an id"
            console().print(
                f"{ring}: {values} values still need {key}. Run this again once every process has the ring."
                if values
                else f"{ring}: nothing stored needs {key} any more. {_what_is_left(ring)}"
            )


def _what_is_left(ring: str) -> str:
    if ring.endswith(OF_ONE_SERVICE):
        return "Take it off the ring."
    return "Queues and dead letters may: see `bankside dead list` first, then take it off the ring at both ends."
