"""External accounts of a customer, of which one is primary."""

from __future__ import annotations

import asyncio

from tests.integration.provider_sandbox.bank import Bank, external_account


async def test_a_new_primary_external_account_takes_the_place_of_the_old(bank: Bank) -> None:
    opened = await bank.open_account()
    path = f"/financial/accounts/{opened.account_id}/external-account"
    none_yet = await bank.get(path)

    first = await bank.done("/core/external-accounts", external_account(opened.core_id, "11111"))
    second = await bank.done("/core/external-accounts", external_account(opened.core_id, "22222"))
    linked = await bank.write("/core/external-accounts", external_account(opened.core_id, "11111"))

    assert none_yet.status == 404
    assert (linked.status, linked.code) == (409, "already_linked")
    assert (await bank.get(path)).body == {
        "external_account_id": second["external_account_id"],
        "account_number": "22222",
        "title": "Acme",
        "routing_number": "021000021",
        "institution_name": "First Bank",
    }
    assert await bank.truth("external-accounts", customer_id=opened.customer_id) == [
        first | {"primary": False},
        second,
    ]


async def test_closing_the_primary_one_makes_the_newest_other_primary(bank: Bank) -> None:
    opened = await bank.open_account()
    numbers = ("11111", "22222", "33333")
    ids = [
        (await bank.done("/core/external-accounts", external_account(opened.core_id, number)))[
            "external_account_id"
        ]
        for number in numbers
    ]

    closed = await bank.done(f"/core/external-accounts/{ids[2]}/close", {})
    linked_anew = await bank.write(
        "/core/external-accounts", external_account(opened.core_id, "33333", primary=False)
    )

    assert closed == {
        "external_account_id": ids[2],
        "customer_id": opened.customer_id,
        "primary": False,
        "status": "closed",
    }
    assert linked_anew.status == 200
    rows = await bank.truth("external-accounts", customer_id=opened.customer_id)
    assert [(row["external_account_id"], row["primary"]) for row in rows[:2]] == [
        (ids[0], False),
        (ids[1], True),
    ]


async def test_of_many_links_at_once_one_is_primary_and_none_is_double(bank: Bank) -> None:
    opened = await bank.open_account()
    numbers = [f"1000{n % 5}" for n in range(20)]

    replies = await asyncio.gather(
        *(
            bank.write("/core/external-accounts", external_account(opened.core_id, number))
            for number in numbers
        )
    )

    assert sorted(reply.status for reply in replies) == [200] * 5 + [409] * 15
    rows = await bank.truth("external-accounts", customer_id=opened.customer_id)
    assert len(rows) == 5
    assert sum(row["primary"] for row in rows) == 1


async def test_external_accounts_are_listed_in_pages_the_primary_first(bank: Bank) -> None:
    opened = await bank.open_account()
    for number, primary in (("11111", False), ("22222", True), ("33333", False), ("44444", False)):
        body = external_account(opened.core_id, number, primary=primary)
        await bank.done("/core/external-accounts", body)

    numbers, cursor = [], None
    while True:
        parameters = {"customer_id": opened.customer_id, "limit": 3}
        page = await bank.get(
            "/financial/external-accounts", **parameters, **({"cursor": cursor} if cursor else {})
        )
        numbers.append([row["account_number"] for row in page.body["external_accounts"]])
        cursor = page.body["next_cursor"]
        if cursor is None:
            break

    assert numbers == [["22222", "44444", "33333"], ["11111"]]
