"""Updates of a business and of persons: sparse, at both providers, under the rules over the whole."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from tests.support.api import Answer
from tests.support.live import CUSTOMERS, Live
from tests.support.people import (
    DENIED,
    PENDING_REVIEW,
    application,
    business,
    new_ein,
    new_key,
    new_tin,
)
from tests.support.waiting import eventually

BUSINESS, PERSON = f"{CUSTOMERS}/business", f"{CUSTOMERS}/person"


async def is_held(
    live: Live, customer_id: str, expected: dict[str, Any], person: Any = None
) -> None:
    """Identity and core hold this of the business or the person; of a field, `None` means that there is none."""
    records = await live.bank.held(customer_id, person)
    assert records
    for held in records:
        live.bank.agrees(held, expected)


async def test_an_update_merges_at_every_level(live: Live) -> None:
    body = application()
    customer_id = (await live.onboarded(body))["business"]["customer_id"]
    before = await live.customer(customer_id)

    answer = await live.partner.patch(
        f"{BUSINESS}/{customer_id}",
        {"business": {"phone": "415-555-0177", "business_address": {"street_1": "9 New Street"}}},
    )

    assert answer.data is None
    assert answer.body["message"]
    sent = body["business"]
    address = {"street_1": "9 New Street", "city": sent["business_address"]["city"]}
    expected = {name: sent[name] for name in ("business_name", "ein")}
    changed = {"phone": "+14155550177", "business_address": address}
    await is_held(live, customer_id, expected | changed)
    after = await live.customer(customer_id)
    assert after["business"]["phone"] == "+14155550177"
    assert after["business"]["business_address"]["street_1"] == "9 New Street"
    unchanged = {"phone", "business_address"}
    assert {k: v for k, v in after["business"].items() if k not in unchanged} == {
        k: v for k, v in before["business"].items() if k not in unchanged
    }
    assert after["updated_at"] > before["updated_at"]

    async def told() -> bool:
        types = Counter(event["type"] for event in await live.events.of(customer_id))
        return types["customer.updated"] == 1

    await eventually("customer.updated", told)


async def test_null_clears_what_is_optional(live: Live) -> None:
    body = application(business=business(is_public=True))
    body["business"]["business_address"]["street_2"] = "Floor 3"
    customer_id = (await live.onboarded(body))["business"]["customer_id"]

    answer = await live.partner.patch(
        f"{BUSINESS}/{customer_id}",
        {"business": {"dba": None, "is_public": None, "business_address": {"street_2": None}}},
    )

    assert answer.status == 200
    for held in await live.bank.held(customer_id):
        assert held.get("dba") is None
        assert not held.get("is_public")
        assert held["business_address"].get("street_2") is None
        assert held["business_address"]["street_1"]
    shown = (await live.customer(customer_id))["business"]
    assert (shown["dba"], shown["is_public"]) == (None, False)
    assert shown["business_address"]["street_2"] is None


async def test_a_person_is_updated_likewise(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    person_id = data["persons"][0]["customer_id"]

    answer = await live.partner.patch(
        f"{PERSON}/{person_id}",
        {
            "last_name": "Byron",
            "employment_status": "retired",
            "home_address": {"zip_code": "94110-1234"},
            "date_of_birth": "1979-01-02",
        },
    )

    assert answer.data is None
    await is_held(
        live,
        data["business"]["customer_id"],
        {
            "last_name": "Byron",
            "first_name": "Ada",
            "employment_status": "retired",
            "date_of_birth": "1979-01-02",
            "home_address": {"zip_code": "94110-1234", "street_1": "2 Mission Street"},
        },
        data["persons"][0] | {"last_name": "Byron"},
    )
    shown = (await live.customer(data["business"]["customer_id"]))["persons"]
    assert [person["last_name"] for person in shown if person["customer_id"] == person_id] == [
        "Byron"
    ]

    async def told() -> bool:
        events = await live.events.of(data["business"]["customer_id"])
        of_person = [e["data"] for e in events if e["type"] == "person.updated"]
        names = [each["last_name"] for each in of_person if each["customer_id"] == person_id]
        return names == [data["persons"][0]["last_name"], "Byron"]

    await eventually("person.updated", told)


async def test_what_an_update_may_not_say(live: Live) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]

    wrong: list[tuple[Any, tuple[str, ...]]] = [
        ({"business_name": None}, ("business_name",)),
        ({"ein": None}, ("ein",)),
        ({"business_address": None}, ("business_address",)),
        ({"business_address": {"city": None}}, ("business_address", "city")),
        ({"colour": "red"}, ("colour",)),
        ({"ein": "12"}, ("ein",)),
    ]
    for update, place in wrong:
        answer = await live.partner.patch(f"{BUSINESS}/{customer_id}", {"business": update})

        assert answer.status == 422
        assert [tuple(e["loc"]) for e in answer.body["detail"]] == [("body", "business", *place)]


async def test_null_is_refused_for_what_a_person_must_have(live: Live) -> None:
    person_id = (await live.onboarded())["persons"][0]["customer_id"]

    answer = await live.partner.patch(f"{PERSON}/{person_id}", {"tin": None, "last_name": None})

    assert answer.status == 422
    places = {tuple(e["loc"]) for e in answer.body["detail"]}
    assert places == {("body", "tin"), ("body", "last_name")}


async def test_an_empty_update_calls_no_provider(live: Live) -> None:
    data = await live.onboarded()
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]
    before = await live.customer(customer_id)
    for api in ("identity", "core"):
        await live.bank.fault(api, "update_customer", "refuse")

    of_business = await live.partner.patch(f"{BUSINESS}/{customer_id}", {"business": {}})
    of_address = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"business_address": {}}}
    )
    of_person = await live.partner.patch(f"{PERSON}/{person_id}", {})

    assert [answer.status for answer in (of_business, of_address, of_person)] == [200] * 3
    assert await live.customer(customer_id) == before


async def test_the_whole_stays_within_a_hundred_percent(live: Live) -> None:
    data = await live.onboarded()
    first, second = data["persons"]

    more = await live.partner.patch(
        f"{PERSON}/{second['customer_id']}", {"ownership_percentage": 40.5}
    )
    less = await live.partner.patch(
        f"{PERSON}/{first['customer_id']}", {"ownership_percentage": 59.5}
    )
    now = await live.partner.patch(
        f"{PERSON}/{second['customer_id']}", {"ownership_percentage": 40.5}
    )

    assert (more.status, less.status, now.status) == (422, 200, 200)
    if live.bank.shows_every_field:
        for held in await live.bank.held(data["business"]["customer_id"], second):
            assert float(held["ownership_percentage"]) == 40.5


async def test_a_controller_remains(live: Live) -> None:
    first, second = (await live.onboarded())["persons"]

    alone = await live.partner.patch(f"{PERSON}/{first['customer_id']}", {"controller": False})
    other = await live.partner.patch(f"{PERSON}/{second['customer_id']}", {"controller": True})
    then = await live.partner.patch(f"{PERSON}/{first['customer_id']}", {"controller": None})

    assert (alone.status, other.status, then.status) == (422, 200, 200)


async def test_an_ein_that_another_customer_has(live: Live) -> None:
    taken, body = application(), application()
    await live.onboarded(taken)
    customer_id = (await live.onboarded(body))["business"]["customer_id"]

    answer = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"ein": taken["business"]["ein"]}}
    )

    assert (answer.status, answer.code) == (409, "already_exists")
    await is_held(live, customer_id, {"ein": body["business"]["ein"]})


async def test_an_ein_given_up_may_be_taken(live: Live) -> None:
    body, later = application(), application()
    later["business"]["ein"] = body["business"]["ein"]
    customer_id = (await live.onboarded(body))["business"]["customer_id"]

    changed = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"ein": (ein := new_ein())}}
    )
    taken_by_update = await live.partner.post(CUSTOMERS, application(business=business(ein=ein)))
    free = await live.partner.post(CUSTOMERS, later)

    assert changed.status == 200
    assert taken_by_update.code == "already_exists"
    assert free.data["status"] == "approved"


async def test_a_denied_customer_is_not_changed(live: Live) -> None:
    data = (await live.partner.post(CUSTOMERS, application(DENIED))).data
    business = f"{BUSINESS}/{data['business']['customer_id']}"
    person = f"{PERSON}/{data['persons'][0]['customer_id']}"

    answers = [
        await live.partner.patch(business, {"business": {"dba": "Phoenix"}}),
        await live.partner.patch(person, {"last_name": "Phoenix"}),
    ]

    assert [(one.status, one.code) for one in answers] == [(409, "invalid_state")] * 2
    assert data["external_bank_account"]["external_bank_account_id"] is None


async def test_what_identity_refuses_changes_nothing_anywhere(live: Live) -> None:
    body = application()
    data = await live.onboarded(body)
    customer_id, person_id = data["business"]["customer_id"], data["persons"][0]["customer_id"]

    of_business = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"ein": new_ein(DENIED), "dba": "Other"}}
    )
    of_person = await live.partner.patch(
        f"{PERSON}/{person_id}", {"tin": new_tin(DENIED), "last_name": "Other"}
    )

    assert (of_business.status, of_business.code) == (409, "provider_refused")
    assert (of_person.status, of_person.code) == (409, "provider_refused")
    sent = body["persons"][0]
    await is_held(live, customer_id, {name: body["business"][name] for name in ("ein", "dba")})
    expected = {name: sent[name] for name in ("last_name", "tin")}
    await is_held(live, customer_id, expected, data["persons"][0])
    assert (await live.customer(customer_id))["business"]["dba"] == body["business"]["dba"]
    # The EIN that was refused was not kept for the customer.
    again = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"ein": body["business"]["ein"]}}
    )
    assert again.status == 200


async def test_an_update_may_have_to_be_looked_at(live: Live) -> None:
    data = await live.onboarded()
    customer_id = data["business"]["customer_id"]

    answer = await live.partner.patch(
        f"{BUSINESS}/{customer_id}", {"business": {"ein": new_ein(PENDING_REVIEW)}}
    )
    await live.has_status(customer_id, "pending_review")
    await live.bank.decide(customer_id, "approved")
    customer = await live.has_status(customer_id, "approved")

    assert answer.status == 200
    assert [account["id"] for account in customer["accounts"]] == [data["business"]["account_id"]]
    assert len(await live.bank.accounts(customer_id)) == 1

    async def told() -> bool:
        types = Counter(event["type"] for event in await live.events.of(customer_id))
        assert types["customer.approved"] == 2, types
        return types["customer.pending_review"] == types["account.opened"] == 1

    await eventually("review and approval were told", told)


async def updated(live: Live, customer_id: str, **fields: Any) -> Answer:
    """The final answer of an update that waits its turn among others, perhaps for longer than its caller does."""
    target, body, key = f"{BUSINESS}/{customer_id}", {"business": fields}, new_key()
    answer = await live.partner.patch(target, body, idempotency_key=key)
    if answer.code != "outcome_pending":
        return answer
    return await live.final("PATCH", target, body, key)


async def test_updates_of_one_customer_at_once_lose_nothing(live: Live) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]
    changes = {
        "dba": "New Anvils",
        "naics_code": "3321",
        "business_description": "Anvils of all sizes",
        "phone": "+14155550111",
        "email": "new@example.com",
        "website": "https://anvils.example/",
        "backup_withholding": True,
        "affiliated_entities": "Hammer Works",
    }

    answers = await asyncio.gather(
        *(updated(live, customer_id, **{name: value}) for name, value in changes.items()),
        *(updated(live, customer_id, is_public=flag) for flag in (True, False)),
        *(
            updated(live, customer_id, business_address=part)
            for part in ({"street_1": "1 One Street"}, {"city": "Oakland"}, {"zip_code": "94607"})
        ),
    )

    assert [answer.status for answer in answers] == [200] * 13
    records = await live.bank.held(customer_id)
    assert records[0] == records[-1]
    address = {"street_1": "1 One Street", "city": "Oakland", "zip_code": "94607"}
    shown = (await live.customer(customer_id))["business"]
    assert {name: shown[name] for name in changes} == changes
    expected = {**changes, "business_address": address, "is_public": shown["is_public"]}
    await is_held(live, customer_id, expected)


async def test_updates_of_one_field_end_alike_everywhere(live: Live) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]

    answers = await asyncio.gather(
        *(updated(live, customer_id, dba=f"Name {n}") for n in range(12))
    )

    assert {answer.status for answer in answers} == {200}
    shown = (await live.customer(customer_id))["business"]
    await is_held(live, customer_id, {"dba": shown["dba"]})

    async def told() -> list[str] | None:
        events = await live.events.of(customer_id)
        names = [e["data"]["business"]["dba"] for e in events if e["type"] == "customer.updated"]
        return names if len(names) == 12 else None

    names = await eventually("twelve updates", told)
    assert names[-1] == shown["dba"], "events are told in the order of what happened"
    assert len(set(names)) == 12


async def test_an_update_is_applied_once_under_its_key(live: Live, idempotency_key: str) -> None:
    customer_id = (await live.onboarded())["business"]["customer_id"]
    target, update = f"{BUSINESS}/{customer_id}", {"business": {"dba": "Once"}}

    first = await live.partner.patch(target, update, idempotency_key)
    await live.partner.patch(target, {"business": {"dba": "Later"}})
    second = await live.partner.patch(target, update, idempotency_key)
    other = await live.partner.patch(target, {"business": {"dba": "Other"}}, idempotency_key)

    assert (first.status, second.status, second.is_replayed) == (200, 200, True)
    assert other.code == "idempotency_key_reused"
    assert (await live.customer(customer_id))["business"]["dba"] == "Later"


async def test_two_persons_at_once_cannot_together_own_too_much(live: Live) -> None:
    """60 and 40 at first, then 30 and 20: both ask for 75, and only one can have it."""
    data = await live.onboarded()
    first, second = (person["customer_id"] for person in data["persons"])
    for person_id, share in ((first, 30), (second, 20)):
        set_up = await live.partner.patch(f"{PERSON}/{person_id}", {"ownership_percentage": share})
        assert set_up.status == 200

    answers = await asyncio.gather(
        *(
            live.partner.patch(f"{PERSON}/{person_id}", {"ownership_percentage": 75})
            for person_id in (first, second)
        )
    )

    assert sorted(answer.status for answer in answers) == [200, 422]
    if live.bank.shows_every_field:
        customer_id = data["business"]["customer_id"]
        held = [(await live.bank.held(customer_id, person))[1] for person in data["persons"]]
        assert sum(float(one["ownership_percentage"]) for one in held) <= 100
