"""`bankside keys reseal`: taking a key out of use."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

from cyclopts import Parameter

from libs.cli.audit import record
from libs.cli.database import with_database
from libs.cli.output import console, print_json
from libs.client.errors import OperatorError
from libs.handling.resealing import GROUP, SealedStore
from libs.persistence.engine import Database
from libs.persistence.resealing import Resealed
from libs.persistence.resealing import reseal as seal_anew
from libs.runtime.process import Misconfigured


def reseal(
    service: str,
    *,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Seal what a service has stored with the first keys of its rings, and say which keys are no longer used.

    The service goes on meanwhile. Put a new key in front of the ring first, and let every process of the services that
    have the ring read it. The command can be interrupted and begun again. It ends with 1 while an old key is used.

    Parameters
    ----------
    service
        gateway, onboarding or webhook_dispatcher.
    """
    store = _store_of(service)

    async def work(database: Database) -> Resealed:
        async with database.transaction() as connection:
            await record(connection, "keys.reseal")
        done = await seal_anew(database, store.columns, store.rings)
        if store.digests is not None:
            old = await store.digests.renew(database)
            done.values.update({(store.digests.variable, key_id): n for key_id, n in old.items()})
        return done

    done = with_database(service, work)
    key_ids = {name: ring.key_ids for name, ring in store.rings.items()}
    if store.digests is not None:
        key_ids[store.digests.variable] = tuple(store.digests.key_ids)
    in_use = {name: _old_keys(name, ids, done) for name, ids in sorted(key_ids.items())}
    if json:
        print_json(
            {"sealed_anew": dict(done.sealed_anew), "unopened": +done.unopened, "old_keys": in_use}
        )
    else:
        _show(store, done, in_use)
    if any(values for old in in_use.values() for values in old.values()) or done.unopened.total():
        raise SystemExit(1)


def _store_of(service: str) -> SealedStore:
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if service not in known:
        raise OperatorError(
            f"{service} stores nothing sealed: name one of {', '.join(sorted(known))}."
        )
    try:
        store: SealedStore = known[service].load()()
    except Misconfigured as error:
        raise OperatorError(f"To reseal {service}, {error}") from None
    return store


def _old_keys(ring: str, key_ids: tuple[str, ...], done: Resealed) -> dict[str, int]:
    """The values that need each key but the first; also keys that are on the ring no more."""
    first, *old = key_ids
    found = {key_id for name, key_id in done.values if name == ring and key_id != first}
    return {key_id: done.values[ring, key_id] for key_id in sorted({*old, *found})}


def _show(store: SealedStore, done: Resealed, in_use: dict[str, dict[str, int]]) -> None:
    for column in store.columns:
        console().print(f"{column.name}: {done.sealed_anew[column.name]} rows sealed anew")
        if done.unopened[column.name]:
            console().print(
                f"  {done.unopened[column.name]} values open with no key of their ring: put back the one that"
                " sealed them."
            )
    for ring, old in in_use.items():
        for key_id, values in old.items():
            key = f"the key {key_id}" if key_id else "the key without an id"
            console().print(
                f"{ring}: {values} values still need {key}. Run this again once every process has the ring."
                if values
                else f"{ring}: nothing stored needs {key} any more. Take it off the ring."
            )
