from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import asyncpg
import pytest

from tests.integration.provider_sandbox.bank import Bank, business, external_account
from tests.integration.provider_sandbox.books import transacted
from tests.integration.provider_sandbox.lists import end, page, rest
from tests.integration.provider_sandbox.wires import Sender, act, open_sender, sent
from tests.support.pace import pace

OPERATIONS = {
    "/identity/customers": ("identity", "list_customers"),
    "/core/customers": ("core", "list_customers"),
    "/core/external-accounts": ("core", "list_external_accounts"),
    "/core/accounts": ("core", "list_accounts"),
    "/core/wires": ("core", "list_wires"),
    "/financial/postings": ("financial", "list_postings"),
    "/financial/balances": ("financial", "list_balances"),
    "/financial/deposit-loads": ("financial", "list_deposit_loads"),
    "/identity/events/newest": ("identity", "get_newest_event"),
    "/core/events/newest": ("core", "get_newest_event"),
    "/financial/events/newest": ("financial", "get_newest_event"),
}


async def add_identity(bank: Bank, _: Sender) -> str:
    created = await bank.done("/identity/customers", business(str(uuid.uuid4())))
    return str(created["identity_id"])


async def add_customer(bank: Bank, _: Sender) -> str:
    created = await bank.done("/core/customers", business(str(uuid.uuid4())))
    return str(created["core_id"])


async def add_external_account(bank: Bank, sender: Sender) -> str:
    number = str(uuid.uuid4().int)[:15]
    link = await bank.done("/core/external-accounts", external_account(sender.core_id, number))
    return str(link["external_account_id"])


async def add_account(bank: Bank, _: Sender) -> str:
    return (await bank.open_account()).account_id


async def add_wire(bank: Bank, sender: Sender) -> str:
    return await sent(bank, sender, "0.01")


async def add_posting(bank: Bank, sender: Sender) -> str:
    booked = await transacted(bank, sender.account_id, "0.01")
    return str(booked["transaction_id"])


async def add_load(bank: Bank, _: Sender) -> str:
    opened = await bank.open_account()
    reply = await bank.simulate("deposit-locations", {"account_id": opened.account_id})
    assert reply.status == 200, reply
    return opened.account_id


ADDITIONS: list[tuple[str, str, Callable[[Bank, Sender], Awaitable[str]]]] = [
    ("/identity/customers", "identity_id", add_identity),
    ("/core/customers", "core_id", add_customer),
    ("/core/external-accounts", "external_account_id", add_external_account),
    ("/core/accounts", "account_id", add_account),
    ("/core/wires", "transaction_id", add_wire),
    ("/financial/postings", "transaction_id", add_posting),
    ("/financial/balances", "account_id", add_account),
    ("/financial/deposit-loads", "account_id", add_load),
]


@pytest.mark.parametrize(("path", "name", "add"), ADDITIONS, ids=[path for path, *_ in ADDITIONS])
async def test_a_list_is_read_from_the_oldest_to_the_newest_and_on_from_where_it_ended(
    bank: Bank, path: str, name: str, add: Callable[[Bank, Sender], Awaitable[str]]
) -> None:
    sender = await open_sender(bank)
    before = await end(bank, path)
    first = [await add(bank, sender) for _ in range(5)]

    read = await rest(bank, path, before, limit=2)
    second = [await add(bank, sender) for _ in range(2)]
    later = await rest(bank, path, read[-1]["position"], limit=2)
    nothing = await page(bank, path, after=later[-1]["position"])

    assert [row[name] for row in read] == first
    assert [row[name] for row in later] == second
    positions = [row["position"] for row in (*read, *later)]
    assert positions == sorted(set(positions))
    assert positions[0] > before
    assert nothing == ([], None)


@pytest.mark.parametrize(("path", "name", "add"), ADDITIONS, ids=[path for path, *_ in ADDITIONS])
async def test_a_reader_beside_the_writers_misses_nothing(
    bank: Bank, path: str, name: str, add: Callable[[Bank, Sender], Awaitable[str]]
) -> None:
    senders = [await open_sender(bank) for _ in range(10)]
    before = await end(bank, path)
    written: list[str] = []
    read: list[dict[str, Any]] = []

    async def write(sender: Sender) -> None:
        for _ in range(4):
            identifier = await add(bank, sender)
            written.append(identifier)

    async def poll() -> None:
        while len(read) < 4 * len(senders):
            after = read[-1]["position"] if read else before
            read.extend(await rest(bank, path, after, limit=7))

    async with asyncio.timeout(30 * pace()), asyncio.TaskGroup() as group:
        group.create_task(poll())
        for sender in senders:
            group.create_task(write(sender))

    assert sorted(row[name] for row in read) == sorted(written)


async def test_a_row_whose_transaction_ends_late_is_not_passed_by_a_later_one(
    bank: Bank, books: asyncpg.Connection
) -> None:
    path = "/core/customers"
    before = await end(bank, path)
    slow = f"cus_{uuid.uuid4().hex}"
    transaction = books.transaction()
    await transaction.start()
    await books.execute(
        "INSERT INTO core_customer (core_id, customer_id, kind, fields)"
        " VALUES ($1, 'slow', 'business', '{}')",
        slow,
    )
    process = await books.fetchval("SELECT pg_backend_pid()")

    adding = asyncio.create_task(bank.done(path, business("quick")))
    async with asyncio.timeout(10 * pace()):
        while not adding.done() and not await books.fetchval(
            "SELECT true FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid))", process
        ):
            await asyncio.sleep(0.01)
    read = await rest(bank, path, before)
    await transaction.commit()
    quick = await adding
    read += await rest(bank, path, read[-1]["position"] if read else before)

    assert [row["core_id"] for row in read] == [slow, quick["core_id"]]


async def test_each_list_shows_what_the_bank_holds(bank: Bank) -> None:
    customer_id = str(uuid.uuid4())
    person: dict[str, Any] = {
        "customer_id": str(uuid.uuid4()),
        "kind": "person",
        "business_customer_id": customer_id,
        "fields": {"tin": "123-45-6789", "name": {"first": "Jane"}},
    }
    identity = await bank.done("/identity/customers", person)
    core = await bank.done("/core/customers", business(customer_id))
    opened = await bank.done(
        "/core/accounts",
        {"core_id": core["core_id"], "account_group": "deposit", "account_title": "Main"},
    )
    account_id = opened["account_id"]
    link = await bank.done("/core/external-accounts", external_account(core["core_id"], "123456"))
    sender = Sender(core["core_id"], account_id, link["external_account_id"])
    deposited = await transacted(bank, account_id, "100.00")
    wire, held = await sent(bank, sender, "40.00"), await sent(bank, sender, "0.50")
    await act(bank, wire, "complete")
    await act(bank, wire, "return", reason="No such account.")
    await bank.done(f"/core/external-accounts/{link['external_account_id']}/close", {})
    loaded = await bank.simulate("deposit-locations", {"account_id": account_id})

    async def one(path: str, **parameters: str) -> dict[str, Any]:
        [row], following = await page(bank, path, **parameters)
        assert following is None
        row.pop("position")
        return row

    assert await one("/identity/customers", customer_id=person["customer_id"]) == {
        **person,
        "identity_id": identity["identity_id"],
        "status": "approved",
        "version": 1,
    }
    assert await one("/core/customers", id=core["core_id"]) == {
        **business(customer_id),
        "fields": {k: v for k, v in business(customer_id)["fields"].items() if v is not None},  # type: ignore[attr-defined]
        "core_id": core["core_id"],
        "status": "active",
    }
    assert await one("/core/external-accounts", customer_id=customer_id) == {
        "external_account_id": link["external_account_id"],
        "core_id": core["core_id"],
        "customer_id": customer_id,
        "routing_number": "021000021",
        "account_number": "123456",
        "status": "closed",
        "primary": False,
    }
    assert await one("/core/accounts", id=account_id) == {
        "account_id": account_id,
        "account_number": opened["account_number"],
        "core_id": core["core_id"],
        "customer_id": customer_id,
        "account_group": "deposit",
        "status": "open",
    }
    postings = [r for r in await rest(bank, "/financial/postings") if r["account_id"] == account_id]
    assert await one("/core/wires", id=wire) == {
        "transaction_id": wire,
        "state": "returned",
        "amount": "40.00",
        "account_id": account_id,
        "external_account_id": link["external_account_id"],
        "reason": "No such account.",
        "return_transaction_id": postings[-1]["transaction_id"],
    }
    not_returned = await one("/core/wires", id=held)
    assert (not_returned["state"], not_returned["return_transaction_id"]) == ("submitted", None)
    assert [(r["type"], r["amount"]) for r in postings] == [
        ("deposit", "100.00"),
        ("wire", "-40.00"),
        ("return", "40.00"),
    ]
    assert postings[0] == {
        "position": postings[0]["position"],
        "transaction_id": deposited["transaction_id"],
        "account_id": account_id,
        "amount": "100.00",
        "type": "deposit",
        "settled_at": deposited["settled_at"],
    }
    assert await one("/financial/balances", id=account_id) == {
        "account_id": account_id,
        "total": "100.00",
        "available": "99.50",
        "held": "0.50",
        "as_of_position": postings[-1]["position"],
    }
    [load] = [
        r for r in await rest(bank, "/financial/deposit-loads") if r["account_id"] == account_id
    ]
    assert load == {
        "position": load["position"],
        "account_id": account_id,
        "load_date": loaded.body["as_of_date"],
        "swept_total": "100.00",
        "locations": 1,
    }


async def test_rows_are_chosen_by_ids_or_customers_each_once(bank: Bank) -> None:
    customer_id, other = str(uuid.uuid4()), str(uuid.uuid4())
    created = [
        (await bank.done("/core/customers", business(owner)))["core_id"]
        for owner in (customer_id, other, customer_id)
    ]

    of_both, _ = await page(bank, "/core/customers", customer_id=customer_id)
    by_id, _ = await page(
        bank, "/core/customers", id=[created[2], created[0], "cus_none", created[0]]
    )
    in_pages, following = await page(bank, "/core/customers", customer_id=customer_id, limit=1)
    the_rest, at_the_end = await page(
        bank, "/core/customers", customer_id=[customer_id, other], after=following
    )
    none, _ = await page(bank, "/core/accounts", customer_id=customer_id)

    assert [row["core_id"] for row in of_both] == [created[0], created[2]]
    assert by_id == of_both
    assert in_pages == of_both[:1]
    assert [row["core_id"] for row in the_rest] == created[1:]
    assert at_the_end is None
    assert none == []


@pytest.mark.parametrize("path", ["/identity/customers", "/core/customers", "/core/wires"])
async def test_the_newest_rows_come_first_when_they_are_asked_for(bank: Bank, path: str) -> None:
    name, add = next((name, add) for of, name, add in ADDITIONS if of == path)
    sender = await open_sender(bank)
    added = [await add(bank, sender) for _ in range(3)]

    newest, following = await page(bank, path, order="newest", limit=2)
    before, _ = await page(bank, path, order="newest", limit=1, before=following)

    assert [row[name] for row in (*newest, *before)] == added[::-1]


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/core/customers", {"limit": "0"}),
        ("/core/customers", {"limit": "501"}),
        ("/core/customers", {"after": "-1"}),
        ("/core/customers", {"order": "oldest"}),
        ("/core/customers", {"order": "newest", "after": "0"}),
        ("/core/customers", {"before": "9"}),
        ("/core/customers", {"id": "a", "customer_id": "b"}),
        ("/core/customers", {"id": [str(n) for n in range(101)]}),
        ("/core/customers", {"status": "active"}),
        ("/core/wires", {"customer_id": "a"}),
        ("/core/accounts", {"order": "newest"}),
        ("/financial/postings", {"id": "a"}),
        ("/financial/deposit-loads", {"customer_id": "a"}),
    ],
    ids=str,
)
async def test_what_a_list_does_not_have_is_refused(
    bank: Bank, path: str, parameters: dict[str, Any]
) -> None:
    reply = await bank.get(path, **parameters)

    assert (reply.status, reply.code) == (400, "invalid")


@pytest.mark.parametrize("path", OPERATIONS)
async def test_a_list_needs_the_token_and_has_faults_of_its_own(bank: Bank, path: str) -> None:
    api, operation = OPERATIONS[path]
    anonymous = await bank.call("GET", path, headers={})
    assert (await bank.fault(api, "refuse", operation=operation, times=1)).status == 200

    refused = await bank.get(path)
    answered = await bank.get(path)

    assert (anonymous.status, anonymous.code) == (401, "unauthorized")
    assert (refused.status, refused.code) == (403, "refused")
    assert answered.status == 200


@pytest.mark.parametrize("api", ["identity", "core", "financial"])
async def test_the_newest_event_is_the_last_of_the_feed(bank: Bank, api: str) -> None:
    sender = await open_sender(bank)
    await add_identity(bank, sender)
    await add_wire(bank, sender)

    newest = await bank.get(f"/{api}/events/newest")

    assert newest.body == {"position": (await bank.events(api))[-1]["position"]}


async def test_a_total_is_the_sum_of_the_postings_up_to_its_position(bank: Bank) -> None:
    sender = await open_sender(bank)
    stop = asyncio.Event()
    balances: list[dict[str, Any]] = []

    async def read() -> None:
        while not stop.is_set():
            rows, _ = await page(bank, "/financial/balances", id=sender.account_id)
            balances.extend(rows)

    async with asyncio.timeout(30 * pace()), asyncio.TaskGroup() as group:
        group.create_task(read())
        async with asyncio.TaskGroup() as writers:
            for _ in range(40):
                writers.create_task(add_posting(bank, sender))
        stop.set()
    balances += (await page(bank, "/financial/balances", id=sender.account_id))[0]

    postings = await rest(bank, "/financial/postings")
    own = [row for row in postings if row["account_id"] == sender.account_id]
    assert len(own) == 41
    assert balances[-1]["as_of_position"] == own[-1]["position"]
    for balance in balances:
        included = [r for r in own if r["position"] <= balance["as_of_position"]]
        assert Decimal(balance["total"]) == sum(Decimal(r["amount"]) for r in included)
