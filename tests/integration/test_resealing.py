"""`bankside keys reseal`: afterwards the old key opens nothing that is stored, and what was stored is the same."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import UUID, uuid4

import asyncpg
import pytest
from sqlalchemy import text

from libs.contracts.customers import UpdateBusiness, UpdatePerson
from libs.contracts.errors import Invalid
from libs.contracts.onboarding_operations import UPDATE_BUSINESS, UPDATE_PERSON
from libs.contracts.operating.resealing import Reseal
from libs.contracts.operation import Operation
from libs.contracts.principal import Family, Principal
from libs.contracts.result import Result
from libs.contracts.webhook_operations import ROTATE_SECRET
from libs.contracts.webhook_views import SubscriptionSecret
from libs.handling.operating import resealing as steps
from libs.handling.operating.resealing import Resealing
from libs.handling.payloads import open_body, success
from libs.handling.queries import QueryHandler
from libs.messaging.envelope import decode_reply, encode
from libs.messaging.message_sealer import MessageSealer
from libs.messaging.service_client import ServiceClient
from libs.persistence import resealing
from libs.persistence.engine import Database, open_database
from libs.persistence.sealing import Keyring, LookupKeys
from services.gateway import resealing as gateway
from services.gateway.credentials import Credentials
from services.gateway.settings import Settings as GatewaySettings
from services.onboarding import resealing as onboarding
from services.onboarding.ordering import ordering_key
from services.onboarding.repository import ein_holds
from services.onboarding.repository.lookup_keys import introduce
from services.onboarding.repository.store import Store
from services.onboarding.repository.vault import Vault
from services.onboarding.settings import Settings as OnboardingSettings
from services.webhook_dispatcher import resealing as webhook_dispatcher
from services.webhook_dispatcher.settings import Settings as DispatcherSettings
from services.webhook_dispatcher.signing_secrets import new_secret, open_secret, seal_secret
from tests.integration.gateway.desk import make_key
from tests.integration.onboarding.shelf import add_pending, read
from tests.support.answered_operators import OPERATOR, AnsweredOperators
from tests.support.command_line import Finished
from tests.support.infrastructure import Environment
from tests.support.keys import sealer_of, storage_of
from tests.support.people import new_ein
from tests.support.stack import Stack
from tests.unit.persistence.keys import a_key

PRINCIPAL = Principal(tenant="t", tenant_name="T", family=Family.PARTNER, subscription_key="sub_1")
NEW = "new"
_COMMAND = """
INSERT INTO inbox (command_id, operation, message_id, request_id, principal, body, reply, deadline)
VALUES ($1, $2, 'm', 'r', $3, $4, $5, 0)
"""


class Rings:
    """The rings of a stack, each with a new key in front; and the new keys alone."""

    def __init__(self, environment: Environment, folder: Path) -> None:
        self.secrets = environment.secrets
        self._operator = AnsweredOperators(
            environment,
            {
                "gateway": self._of_gateway,
                "onboarding": self._of_onboarding,
                "webhook_dispatcher": self._of_dispatcher,
            },
        )
        earlier = Stack(environment, folder).env
        fresh: dict[str, str] = {}
        for name, ring in earlier.items():
            if name.endswith("_KEYS"):
                # Both ends of a pair have one ring.
                fresh.setdefault(ring, f"{NEW}:{a_key()}")
        self.settings = earlier | {
            name: f"{fresh[ring]},{ring}" for name, ring in earlier.items() if ring in fresh
        }
        self.new = {name: Keyring(fresh[ring]) for name, ring in earlier.items() if ring in fresh}

    def storage(self, service: str) -> Keyring:
        return self.new[f"BANKSIDE_{service.upper()}_STORAGE_KEYS"]

    def shared(self, service: str, peer: str) -> MessageSealer:
        ring = self.new[f"BANKSIDE_{service.upper()}_{peer.upper()}_KEYS"]
        return MessageSealer(service, {peer: ring})

    async def reseal(self, service: str) -> tuple[int, dict[str, Any]]:
        done = await self.run("reseal", service, "--reason", "a key goes", "--json")
        return done.status, json.loads(done.out)

    async def run(self, *arguments: str) -> Finished:
        with patch.dict(os.environ, self.settings):  # services read their rings from it
            return await self._operator.run("keys", *arguments)

    @staticmethod
    def _of_gateway(database: Database) -> Mapping[str, QueryHandler]:
        store = gateway.sealed_store(GatewaySettings.load().ring("storage_keys"))
        return Resealing("gateway", database, store).by_operation()

    @staticmethod
    def _of_onboarding(database: Database) -> Mapping[str, QueryHandler]:
        store = onboarding.sealed_store(OnboardingSettings.load(), database)
        return Resealing("onboarding", database, store).by_operation()

    @staticmethod
    def _of_dispatcher(database: Database) -> Mapping[str, QueryHandler]:
        store = webhook_dispatcher.sealed_store(DispatcherSettings.load())
        return Resealing("webhook_dispatcher", database, store).by_operation()


@pytest.fixture
def rings(fresh_environment: Environment, tmp_path: Path) -> Rings:
    return Rings(fresh_environment, tmp_path)


async def record(
    connection: asyncpg.Connection,
    operation: Operation,
    command_id: UUID,
    *,
    body: bytes = b"{}",
    reply: bytes | None = None,
) -> None:
    await connection.execute(_COMMAND, command_id, operation.name, encode(PRINCIPAL), body, reply)


async def test_personal_data_and_commands_are_sealed_anew(
    fresh_environment: Environment, rings: Rings
) -> None:
    secrets, command_id = fresh_environment.secrets, uuid4()
    lookup = LookupKeys(secrets.lookup_keys["onboarding"])
    store = Store(Vault(storage_of(secrets, "onboarding"), lookup))
    url = fresh_environment.database_urls["onboarding"]
    database = open_database(url, "tests")
    connection = await asyncpg.connect(url)
    async with database.transaction() as transaction:
        file = await add_pending(transaction, store, "t")
        business = await store.customers.business(transaction, file.customer)
        pretending = business.model_copy(update={"business_name": "s1.k0.AAAA"})
        await store.customers.set_business(transaction, file.customer, pretending)
        business = await store.customers.business(transaction, file.customer)
    command = UpdatePerson.model_validate({"person_id": str(uuid4()), "tin": "536904399"})
    envelope = ServiceClient(sealer_of(secrets, "gateway")).envelope(
        *(UPDATE_PERSON, PRINCIPAL, command),
        command_id=str(command_id),
        request_id="r",
        deadline=time.time(),
    )
    await record(connection, UPDATE_PERSON, command_id, body=bytes(envelope.body))
    await record(connection, UPDATE_PERSON, uuid4(), body=b"")  # finished

    code, done = await rings.reseal("onboarding")
    _, again = await rings.reseal("onboarding")

    anew = Store(Vault(rings.storage("onboarding"), lookup))
    async with database.transaction() as transaction:
        file = await read(transaction, anew, "t", file.customer.customer_id)
        assert await anew.customers.business(transaction, file.customer) == business
        assert file.draft is not None
        assert await anew.external_accounts.details(transaction, file.draft)
        assert await anew.persons.details(transaction, "t", [p.person_id for p in file.persons])
    body = await connection.fetchval("SELECT body FROM inbox WHERE command_id = $1", command_id)
    sealer = rings.shared("onboarding", "gateway")
    assert open_body(UPDATE_PERSON, str(command_id), body, sealer) == command
    assert code == 0
    assert set(done["sealed_anew"].values()) == {0, 1}
    assert not any(again["sealed_anew"].values())
    assert not any(values for ring in done["old_keys"].values() for values in ring.values())
    await connection.close()
    await database.close()


async def test_what_is_found_by_an_old_lookup_key_is_found_by_the_new_one(
    fresh_environment: Environment, rings: Rings
) -> None:
    variable = "BANKSIDE_ONBOARDING_LOOKUP_KEYS"
    storage = storage_of(fresh_environment.secrets, "onboarding")
    old_keys = LookupKeys(fresh_environment.secrets.lookup_keys["onboarding"])
    both_keys = LookupKeys(rings.settings[variable])
    new_keys = LookupKeys(rings.settings[variable].partition(",")[0])
    old, both, new = (Store(Vault(storage, keys)) for keys in (old_keys, both_keys, new_keys))
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    async with database.transaction() as connection:
        file = await add_pending(connection, old, "t")
        customer_id, stranger = file.customer.customer_id, uuid4()
        business = await old.customers.business(connection, file.customer)
        assert file.draft is not None
        account = await old.external_accounts.details(connection, file.draft)
        await ein_holds.take(connection, "t", customer_id, old.vault.ein_digests(business.ein))

    async def found_by(store: Store) -> tuple[bool, bool]:
        """Whether the EIN is taken, and the number known."""
        digests = store.vault.ein_digests(business.ein)
        async with database.engine.connect() as connection:  # which commits nothing
            holders = await ein_holds.take(connection, "t", stranger, digests)
            known = await store.external_accounts.has_number(connection, "t", customer_id, account)
        return holders != [stranger], known

    before = await found_by(both), await found_by(new)
    code, done = await rings.reseal("onboarding")
    during = await found_by(old), await found_by(both), await found_by(new)
    rings.settings[variable] = rings.settings[variable].partition(",")[0]
    last, after = await rings.reseal("onboarding")

    assert before == ((True, True), (False, False))
    assert (code, done["old_keys"][variable]) == (0, {old_keys.key_ids[0]: 0})
    assert during == ((True, False), (True, True), (True, True))
    assert (last, after["old_keys"][variable]) == (0, {})
    async with database.transaction() as connection:
        held = await connection.execute(text("SELECT ein_digest FROM ein_holds"))
        assert list(held.scalars()) == [*new.vault.ein_digests(business.ein)]
    await database.close()


async def test_eins_are_found_again_after_their_lookup_key_was_lost(
    fresh_environment: Environment, rings: Rings
) -> None:
    variable = "BANKSIDE_ONBOARDING_LOOKUP_KEYS"
    storage = storage_of(fresh_environment.secrets, "onboarding")
    old = Store(Vault(storage, LookupKeys(fresh_environment.secrets.lookup_keys["onboarding"])))
    rings.settings[variable] = rings.settings[variable].partition(",")[0]
    new_keys = LookupKeys(rings.settings[variable])
    new = Store(Vault(storage, new_keys))
    database = open_database(fresh_environment.database_urls["onboarding"], "tests")
    await introduce(database, LookupKeys(f"lost:{a_key()}"), variable)
    async with database.transaction() as connection:
        file = await add_pending(connection, old, "t")
        customer_id = file.customer.customer_id
        ein = (await old.customers.business(connection, file.customer)).ein
        await ein_holds.take(connection, "t", customer_id, old.vault.ein_digests(ein))
    owner = await asyncpg.connect(fresh_environment.database_urls["onboarding_owner"])
    await owner.execute("DELETE FROM onboarding.lookup_keys")
    await owner.close()

    await introduce(database, new_keys, variable)
    code, done = await rings.reseal("onboarding")

    assert (code, done["old_keys"][variable]) == (0, {})
    async with database.transaction() as connection:
        held = await connection.execute(text("SELECT ein_digest FROM ein_holds"))
        assert list(held.scalars()) == [*new.vault.ein_digests(ein)]
    await database.close()


async def test_an_ein_that_an_unfinished_change_holds_is_held_by_the_new_key(
    fresh_environment: Environment, rings: Rings
) -> None:
    variable = "BANKSIDE_ONBOARDING_LOOKUP_KEYS"
    secrets, tenant = fresh_environment.secrets, "t"
    storage = storage_of(secrets, "onboarding")
    old_keys = LookupKeys(secrets.lookup_keys["onboarding"])
    old = Store(Vault(storage, old_keys))
    new_keys = rings.settings[variable].partition(",")[0]
    new = Store(Vault(storage, LookupKeys(new_keys)))
    url = fresh_environment.database_urls["onboarding"]
    database, connection = open_database(url, "tests"), await asyncpg.connect(url)
    wanted, abandoned = (
        new_ein(),
        new_ein(),
    )  # by a change that is under way, and by one that was abandoned
    async with database.transaction() as transaction:
        file = await add_pending(transaction, old, tenant)
        customer_id = file.customer.customer_id
        present = (await old.customers.business(transaction, file.customer)).ein
        for ein in (present, wanted, abandoned):
            await ein_holds.take(transaction, tenant, customer_id, old.vault.ein_digests(ein))
    command_id = uuid4()
    command = UpdateBusiness.model_validate(
        {"customer_id": str(customer_id), "business": {"ein": wanted, "phone": "+12125550188"}}
    )
    envelope = ServiceClient(sealer_of(secrets, "gateway")).envelope(
        *(UPDATE_BUSINESS, PRINCIPAL, command),
        command_id=str(command_id),
        request_id="r",
        deadline=time.time(),
    )
    body = bytes(envelope.body)
    of_another_release = body.replace(b"+12125550188", b"a form of its own")
    await record(connection, UPDATE_BUSINESS, command_id, body=of_another_release)
    key = ordering_key(tenant, customer_id)
    await connection.execute("UPDATE inbox SET ordering_key = $1", key)

    async def reseal_with(keys: str) -> tuple[int, Any, set[bytes]]:
        rings.settings[variable] = keys
        code, done = await rings.reseal("onboarding")
        rows = await connection.fetch("SELECT ein_digest FROM ein_holds")
        return code, done["old_keys"][variable], {row["ein_digest"] for row in rows}

    def digests_by(store: Store, *eins: str) -> set[bytes]:
        return {digest for ein in eins for digest in store.vault.ein_digests(ein)}

    keys = rings.settings[variable]
    unreadable = await reseal_with(keys)
    await connection.execute("UPDATE inbox SET body = $1", body)
    too_early = await reseal_with(new_keys)
    during = await reseal_with(keys)
    after = await reseal_with(new_keys)

    [old_id] = old_keys.key_ids
    before = digests_by(old, present, wanted, abandoned)
    assert unreadable == (1, {old_id: 1}, before)
    assert too_early == (1, {old_id: 1}, before)
    assert during == (
        0,
        {old_id: 0},
        digests_by(old, present, wanted) | digests_by(new, present, wanted),
    )
    assert after == (0, {}, digests_by(new, present, wanted))
    await database.close()
    await connection.close()


async def test_secrets_of_subscriptions_and_replies_are_sealed_anew(
    fresh_environment: Environment, rings: Rings
) -> None:
    secrets, command_id, subscription_id, secret = (
        fresh_environment.secrets,
        uuid4(),
        uuid4(),
        new_secret(),
    )
    connection = await asyncpg.connect(fresh_environment.database_urls["webhook_dispatcher"])
    await connection.execute(
        "INSERT INTO subscription (id, tenant, event_type, callback_url, description, status, secret, created_at,"
        " updated_at) VALUES ($1, 't', 'x', 'https://example.com', '', 'active', $2, now(), now())",
        subscription_id,
        seal_secret(storage_of(secrets, "webhook_dispatcher"), subscription_id, secret),
    )
    await connection.execute(
        "INSERT INTO subscription SELECT gen_random_uuid(), tenant, customer_id, event_type, callback_url, description,"
        " 'deleted', '', NULL, NULL, 0, now(), now(), 0 FROM subscription"
    )
    view = SubscriptionSecret(secret=secret, previous_secret_expires_at=None)
    reply = success(
        ROTATE_SECRET.partner,
        str(command_id),
        "m",
        Result(view),
        sealer_of(secrets, "webhook_dispatcher"),
    )
    await record(connection, ROTATE_SECRET.partner, command_id, reply=encode(reply))

    code, done = await rings.reseal("webhook_dispatcher")

    stored = await connection.fetchval(
        "SELECT secret FROM subscription WHERE id = $1", subscription_id
    )
    answered = decode_reply(await connection.fetchval("SELECT reply FROM inbox"))
    opened = ServiceClient(rings.shared("gateway", "webhook_dispatcher")).open_result(
        ROTATE_SECRET.partner, answered
    )
    assert open_secret(rings.storage("webhook_dispatcher"), subscription_id, stored) == secret
    assert opened["data"]["secret"] == secret
    assert code == 0
    assert not done["unopened"]
    assert done["sealed_anew"]["inbox.reply"] == done["sealed_anew"]["subscription.secret"] == 1
    await connection.close()


async def test_a_row_that_is_locked_is_not_waited_for_and_keeps_its_key_in_use(
    fresh_environment: Environment, rings: Rings
) -> None:
    url = fresh_environment.database_urls["gateway"]
    database, connection = open_database(url, "tests"), await asyncpg.connect(url)
    keyring = storage_of(fresh_environment.secrets, "gateway")
    keys = [await make_key(database, keyring) for _ in range(2)]
    [old] = keyring.key_ids
    async with connection.transaction():
        await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        await connection.execute(
            "SELECT FROM credentials WHERE subscription_key = $1 FOR UPDATE",
            keys[0].subscription_key,
        )

        code, during = await rings.reseal("gateway")
    later, after = await rings.reseal("gateway")

    ring = "BANKSIDE_GATEWAY_STORAGE_KEYS"
    assert (code, during["old_keys"][ring]) == (1, {old: 1})
    assert (later, after["old_keys"][ring]) == (0, {old: 0})
    credentials = Credentials(database, rings.storage("gateway"))
    for key in keys:
        found = await credentials.find(key.subscription_key)
        assert found is not None
        assert found.secret.decode() == key.secret
    await connection.close()
    await database.close()


async def test_of_a_ring_of_two_services_it_is_said_that_dead_letters_may_need_the_old_key(
    rings: Rings,
) -> None:
    done = await rings.run("reseal", "webhook_dispatcher", "--reason", "a key goes")

    said = " ".join(done.out.split())
    of_one, of_two = (
        said.partition(f"BANKSIDE_WEBHOOK_DISPATCHER_{kind}_KEYS:")[2].partition("BANKSIDE_")[0]
        for kind in ("STORAGE", "GATEWAY")
    )
    assert done.status == 0
    assert "bankside dead list" in of_two
    assert "Take it off the ring." in of_one


async def test_values_of_another_key_under_the_same_id_are_told_as_unopened(
    fresh_environment: Environment, rings: Rings
) -> None:
    database = open_database(fresh_environment.database_urls["gateway"], "tests")
    ring = "BANKSIDE_GATEWAY_STORAGE_KEYS"
    earlier = f"{NEW}:{a_key()}"
    await make_key(database, Keyring(earlier))
    rings.settings[ring] = f"{NEW}:{a_key()}"

    replaced, found = await rings.reseal("gateway")
    rings.settings[ring] = earlier
    code, put_back = await rings.reseal("gateway")

    await database.close()
    assert (replaced, found["unopened"]) == (1, {"credentials.secret": 1})
    assert (code, put_back["unopened"]) == (0, {})


async def test_many_rows_are_sealed_in_steps_that_go_on_where_the_last_one_ended(
    fresh_environment: Environment, rings: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resealing, "BATCH", 2)
    monkeypatch.setattr(steps, "STEP_SECONDS", 0.0)
    database = open_database(fresh_environment.database_urls["gateway"], "tests")
    keyring = storage_of(fresh_environment.secrets, "gateway")
    for _ in range(5):
        await make_key(database, keyring)

    code, done = await rings.reseal("gateway")

    entries = await audited(database)
    await database.close()
    assert (code, done["sealed_anew"]["credentials.secret"]) == (0, 5)
    assert done["old_keys"]["BANKSIDE_GATEWAY_STORAGE_KEYS"] == {keyring.key_ids[0]: 0}
    assert set(entries) == {("operator:grace", "keys.reseal", "a key goes")}
    assert len(entries) >= 3, "each step is audited"


async def test_a_place_that_no_step_gave_is_refused(fresh_environment: Environment) -> None:
    database = open_database(fresh_environment.database_urls["gateway"], "tests")
    keyring = storage_of(fresh_environment.secrets, "gateway")
    store = gateway.sealed_store(keyring)
    handler = Resealing("gateway", database, store)
    beyond = f"[{len(store.columns)}]"

    for after in ("x", "[]", "[-1]", beyond, "[9]", '[0,["a","b"]]', "[0,[]]"):
        with pytest.raises(Invalid):
            await handler.step(OPERATOR, Reseal(reason="x", after=after), 0)
    await database.close()


async def audited(database: Database) -> list[tuple[str, str, str]]:
    async with database.transaction() as connection:
        rows = await connection.execute(text("SELECT entry FROM audit ORDER BY day, number"))
        entries = [json.loads(row[0]) for row in rows]
    return [(one["actor"], one["action"], one["reason"]) for one in entries]


async def test_a_service_that_stores_nothing_sealed_is_named(rings: Rings) -> None:
    done = await rings.run("reseal", "payments", "--reason", "x")

    assert done.status == 2
    assert all(name in done.err for name in ("gateway", "onboarding", "webhook_dispatcher"))
