"""Increase's books as reconciliation reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from increase import AsyncIncrease
from increase.types import Entity
from increase.types.entity import CorporationBeneficialOwner

from libs.contracts.wires import WireState
from libs.providers.companies import Role
from libs.providers.feed_entries import FeedCursor
from libs.providers.increase.client import IncreaseClient
from libs.providers.increase.events import EventFeed
from libs.providers.sessions import open_session
from services.ledger_read.adapters.increase.numbers import AccountNumbers
from services.ledger_read.adapters.increase.reading import Reader
from services.reconciliation.adapters.increase import lists, parties
from services.reconciliation.handlers.comparison import Comparison
from services.reconciliation.handlers.customers import CustomerComparison, CustomerLists
from services.reconciliation.handlers.external_accounts import ExternalAccountComparison
from services.reconciliation.handlers.holders import (
    external_accounts_with_holders,
    lists_with_holders,
)
from services.reconciliation.handlers.parties import of_identity
from services.reconciliation.handlers.wires import WireComparison, WireSides, judge
from services.reconciliation.models import IN_FLIGHT
from services.reconciliation.ports import CoreWire, ProviderList
from tests.support.ids import made_id
from tests.support.increase_bank import kinds
from tests.support.increase_bank.server import running_bank
from tests.support.increase_clients import (
    ADDRESS,
    client_of,
    fund,
    give_number,
    link_external,
    make_entity,
    open_account,
)
from tests.unit.providers.conftest import Provider, provider, session
from tests.unit.providers.increase.conftest import increase, shows, wire_transfer
from tests.unit.providers.increase.conftest import lists as rows
from tests.unit.reconciliation import records as r
from tests.unit.reconciliation.fakes import (
    DIGEST,
    FakeList,
    FakeOnboarding,
    FakePayments,
    compared,
    soon,
)

__all__ = ["increase", "provider", "session"]

WRITES, READS = "a-key-that-may-all", "a-key-that-reads"

HARBOR_STREET = {
    "street_1": "21 Harbor Street",
    "street_2": None,
    "city": "Portland",
    "state": "ME",
    "zip_code": "04101",
    "country": "US",
}
"""`ADDRESS`, as our services have it."""


class Bank:
    """The bank as its customers use it, and as reconciliation reads it."""

    def __init__(
        self, sdk: AsyncIncrease, client: IncreaseClient, requests: Mapping[str, int]
    ) -> None:
        self.sdk = sdk
        self.client = client
        self.requests = requests

    async def wire(self, key: str | None, cents: int = 1000) -> tuple[str, str]:
        """The accounts of a wire that was sent under the key."""
        account, external = await open_account(self.sdk), await link_external(self.sdk)
        await fund(self.sdk, account, 100_000)
        await self.sdk.wire_transfers.create(
            account_id=account.id,
            external_account_id=external.id,
            amount=cents,
            creditor={"name": "Supplier Inc"},
            remittance={"category": "unstructured", "unstructured": {"message": "Nets"}},
            idempotency_key=key,
        )
        return account.id, external.id

    async def decide(self, entity_id: str, *issues: str, status: str = "active") -> None:
        """Have the bank find issues with an entity.

        Args:
            issues: their categories.
            status: of the entity from then on.
        """
        body = {"issues": issues, "status": status}
        await self.sdk.post(f"/fake/entities/{entity_id}", cast_to=httpx.Response, body=body)


@pytest.fixture
async def bank(tmp_path: Path) -> AsyncIterator[Bank]:
    keys: Any = {WRITES: "everything", READS: "read"}
    async with (
        running_bank(tmp_path, keys) as running,
        client_of(running.url, WRITES) as sdk,
        open_session(8) as session,
    ):
        running.bank.conduct.wire_seconds = 3600
        running.bank.conduct.page_limit = 2
        yield Bank(sdk, IncreaseClient("core", running.url, READS, session), running.bank.requests)
        assert running.bank.violations == []


async def all_of(records: ProviderList[Any]) -> list[Any]:
    rows: list[Any] = []
    page = await records.page(None, soon())
    rows += page.rows
    while page.next_after is not None:
        page = await records.page(page.next_after, soon())
        rows += page.rows
    return rows


async def test_wires_are_found_by_our_ids_and_those_of_others_left_out(bank: Bank) -> None:
    ids = [str(made_id()) for _ in range(3)]
    account_id, external_account_id = await bank.wire(ids[0], 1234)
    for key in (*ids[1:], "a key of others", str(uuid4())):
        await bank.wire(key)
    records = lists.wires(bank.client)

    listed = await all_of(records)
    [found] = await records.by_ids([ids[0], str(made_id())], soon())
    [made] = (await bank.sdk.wire_transfers.list(idempotency_key=ids[0])).data

    assert [wire.transaction_id for wire in listed] == ids[::-1]
    assert found == CoreWire(
        transaction_id=ids[0],
        state="submitted",
        amount=Decimal("12.34"),
        account_id=account_id,
        external_account_id=external_account_id,
        provider_id=made.id,
    )


async def test_a_record_that_is_looked_up_takes_as_many_requests_as_its_list_says(
    bank: Bank,
) -> None:
    transaction_id = str(made_id())
    account_id, external_account_id = await bank.wire(transaction_id)
    entity = await make_entity(bank.sdk, key=str(made_id()))
    looked_up: list[tuple[ProviderList[Any], str]] = [
        (lists.wires(bank.client), transaction_id),
        (lists.accounts(bank.client), account_id),
        (lists.external_accounts(bank.client), external_account_id),
        (parties.customers(bank.client, parties.core_customer), entity.id),
    ]

    for records, record_id in looked_up:
        before = sum(bank.requests.values())
        [_] = await records.by_ids([record_id], soon())

        assert sum(bank.requests.values()) - before == records.requests_each


async def test_a_wire_that_was_reversed_is_read_like_any_other(bank: Bank) -> None:
    transaction_id = str(made_id())
    await bank.wire(transaction_id)
    [made] = (await bank.sdk.wire_transfers.list()).data
    await bank.sdk.simulations.wire_transfers.submit(made.id)
    await bank.sdk.simulations.wire_transfers.with_raw_response.reverse(made.id)
    records = lists.wires(bank.client)

    [listed] = await all_of(records)
    [found] = await records.by_ids([transaction_id], soon())

    assert listed == found
    assert (listed.transaction_id, listed.state) == (transaction_id, "returned")


async def test_a_wire_of_ours_in_a_status_of_a_later_release_differs_and_others_are_compared(
    provider: Provider, increase: IncreaseClient
) -> None:
    new, known = made_id(), made_id()
    rows = [wire_transfer(new) | {"status": "of_a_later_release"}, wire_transfer(known)]
    provider.answers = [shows({"data": rows})]

    page = await lists.wires(increase).page(None, soon())
    ours = r.our_wire(
        state=WireState.SUBMITTED,
        amount=Decimal("10.50"),
        sending_account_id="account_1",
        external_account_id="external_account_1",
    )
    found = [judge("w_1", WireSides(ours, one, None, debit_is_known=False)) for one in page.rows]

    assert [one.transaction_id for one in page.rows] == [str(new), str(known)]
    differing, agreeing = found
    assert agreeing == []
    assert isinstance(differing, list)
    assert [(one.kind, (one.theirs or {})["state"]) for one in differing] == [
        ("wire_state", "of_a_later_release")
    ]


async def test_a_second_wire_under_one_key_is_a_difference_that_has_both_ids(
    provider: Provider, increase: IncreaseClient
) -> None:
    """Ours is compared with the first one."""
    key = made_id()
    first = wire_transfer(key, id="wire_transfer_1")
    second = wire_transfer(key, id="wire_transfer_2", status="complete", amount=2000)
    provider.answers = [shows({"data": [second, first]})] * 4
    ours = r.our_wire(
        transaction_id=str(key),
        state=WireState.SUBMITTED,
        amount=Decimal("10.50"),
        sending_account_id="account_1",
        external_account_id="external_account_1",
    )
    comparison = WireComparison(FakePayments(ours), lists.wires(increase), None, page_size=100)

    found = await compared(comparison)

    [finding] = found.values()
    assert isinstance(finding, list)
    assert [(one.kind, (one.theirs or {})["wires"]) for one in finding] == [
        ("wire_unknown_to_us", ["wire_transfer_1", "wire_transfer_2"])
    ]


async def test_a_feed_that_applied_nothing_is_behind_once_there_is_an_event(bank: Bank) -> None:
    feed_begin = FeedCursor(0)
    before = await lists.newest_entry(bank.client, Role.CORE, feed_begin, soon())
    await bank.wire(str(made_id()))
    events = EventFeed(bank.client, lists.FOLLOWED[Role.CORE])
    [*_, last] = await events.fetch(None, 100)
    applied = FeedCursor(7, last.state)

    after = await lists.newest_entry(bank.client, Role.CORE, feed_begin, soon())
    of_another = await lists.newest_entry(bank.client, Role.IDENTITY, feed_begin, soon())
    at_the_end = await lists.newest_entry(bank.client, Role.CORE, applied, soon())

    assert (before, after, of_another, at_the_end) == (0, 1, 0, 7)


async def test_an_account_is_shown_with_the_number_that_it_got_first(bank: Bank) -> None:
    account = await open_account(bank.sdk)
    first = await give_number(bank.sdk, account)
    for _ in range(2):  # so that the first one is on another page
        await give_number(bank.sdk, account)
    records = lists.accounts(bank.client)

    [found] = await records.by_ids([account.id, "account_unknown"], soon())
    await bank.sdk.accounts.close(account.id)
    [closed] = await records.by_ids([account.id], soon())

    assert (found.account_number, found.core_id) == (first.account_number, account.entity_id)
    assert (found.status, closed.status) == ("open", "closed")


ACCOUNT = {
    "id": "account_1",
    "created_at": "2026-03-02T15:00:00Z",
    "entity_id": "entity_1",
    "interest_rate": "0",
    "name": "Operating",
    "status": "open",
}
NUMBER = {
    "id": "account_number_1",
    "account_id": "account_1",
    "account_number": "123456789",
    "created_at": "2026-03-02T15:00:00Z",
    "status": "active",
}


@pytest.mark.parametrize(
    ("status", "shown"),
    [("active", "123456789"), ("disabled", ""), ("canceled", ""), ("of_a_later_release", "")],
)
async def test_a_number_to_which_no_payments_can_be_made_is_none(
    provider: Provider, increase: IncreaseClient, status: str, shown: str
) -> None:
    provider.answers = [shows(ACCOUNT), rows([NUMBER | {"status": status}])]

    [found] = await lists.accounts(increase).by_ids(["account_1"], soon())

    assert found.account_number == shown


async def test_of_numbers_that_were_made_in_one_second_the_one_that_callers_see_is_compared(
    provider: Provider, increase: IncreaseClient
) -> None:
    other = NUMBER | {"id": "account_number_2", "account_number": "987654321"}
    seen = AccountNumbers(Reader(increase))
    provider.answers = [shows(ACCOUNT), *[rows([other, NUMBER])] * 2]

    [found] = await lists.accounts(increase).by_ids(["account_1"], soon())

    assert found.account_number == await seen.number("account_1", soon()) == "123456789"


async def test_external_accounts_have_numbers_and_status(bank: Bank) -> None:
    external = await link_external(bank.sdk)
    records = lists.external_accounts(bank.client)

    [linked] = await records.by_ids([external.id], soon())
    await bank.sdk.external_accounts.update(external.id, status="archived")
    [archived] = await records.by_ids([external.id], soon())

    assert (linked.routing_number, linked.account_number) == ("021000021", "123456789012")
    assert (linked.status, archived.status) == ("open", "closed")
    assert linked.primary is None


async def test_an_external_account_in_a_status_that_increase_has_added_is_not_known_to_be_closed(
    provider: Provider, increase: IncreaseClient
) -> None:
    external = {"id": "external_1", "account_number": "1234", "routing_number": "021000021"}
    provider.answers = [shows(external | {"status": "of_a_later_release"})]

    [found] = await lists.external_accounts(increase).by_ids(["external_1"], soon())

    assert found.status == "open"


def owners_of(entity: Entity) -> Sequence[CorporationBeneficialOwner]:
    assert entity.corporation is not None
    return entity.corporation.beneficial_owners


async def test_an_entity_is_a_business_and_its_owners_persons(bank: Bank) -> None:
    entity = await make_entity(bank.sdk)
    assert entity.corporation is not None
    [owner] = entity.corporation.beneficial_owners
    core = parties.customers(bank.client, parties.core_customer)
    identity = parties.customers(bank.client, parties.identity_record)

    by_both = await core.by_ids([entity.id, owner.id], soon())
    [beside] = await core.by_ids([f"{entity.id}/{made_id()}"], soon())
    [by_owner] = await core.by_ids([owner.id, "entity_unknown"], soon())
    verdicts = await identity.by_ids([entity.id, owner.id], soon())
    await bank.sdk.entities.archive(entity.id)
    archived = await core.by_ids([entity.id], soon())

    business, person = sorted(by_both, key=lambda one: one.kind)
    assert (business.core_id, business.status) == (entity.id, "open")
    assert business.fields == {
        "business_name": "Tidewater Goods LLC",
        "business_address": HARBOR_STREET,
        "email": None,
        "ein": "602214076",
        "formation_state": "ME",
        "naics_code": "4539",
    }
    assert person.fields == {"date_of_birth": "1980-05-17", "home_address": HARBOR_STREET}
    assert person == by_owner
    assert (beside.kind, beside.business_record_id, beside.fields) == ("person", entity.id, {})
    assert (person.core_id, person.business_record_id) == (owner.id, entity.id)
    assert {one.kind: one.status for one in verdicts} == {"business": "approved", "person": None}
    assert [one.status for one in archived] == ["closed"]


async def test_the_business_of_a_disabled_entity_is_in_review(bank: Bank) -> None:
    entity = await make_entity(bank.sdk, key=str(made_id()))
    await bank.decide(entity.id, status="disabled")

    listed = await all_of(parties.customers(bank.client, parties.identity_record))

    statuses = {one.kind: one.status for one in listed}
    assert statuses == {"business": "pending_review", "person": None}


async def test_an_entity_with_an_issue_of_a_new_category_is_read_like_any_other(bank: Bank) -> None:
    entities = [await make_entity(bank.sdk, key=str(made_id())) for _ in range(2)]
    entity_id = entities[0].id
    assert entities[0].corporation is not None
    [owner] = entities[0].corporation.beneficial_owners
    await bank.decide(entity_id, "of_a_later_release")
    identity = parties.customers(bank.client, parties.identity_record)

    listed = await all_of(identity)
    by_both = await identity.by_ids([entity_id, owner.id], soon())
    by_owner = await identity.by_ids([owner.id], soon())

    businesses = [one.identity_id for one in listed if one.kind == "business"]
    assert businesses == [entities[1].id, entity_id]
    assert {one.identity_id: one.status for one in by_both} == {entity_id: None, owner.id: None}
    assert [one.identity_id for one in by_owner] == [owner.id]


async def test_owners_of_an_entity_that_is_closed_are_closed_with_it(bank: Bank) -> None:
    entity = await make_entity(bank.sdk, key=str(made_id()))
    await make_entity(bank.sdk, ein="602210001", key=str(made_id()))  # archived from the beginning
    assert entity.corporation is not None
    [owner] = entity.corporation.beneficial_owners
    records = parties.customers(bank.client, parties.identity_record)
    nothing: FakeList[Any] = FakeList([], "")
    onboarding = FakeOnboarding()
    held = lists_with_holders(CustomerLists(records, nothing, nothing), onboarding)
    customers = CustomerComparison(onboarding, held, DIGEST)

    opened = await compared(customers)
    await bank.sdk.entities.archive(entity.id)
    archived = await compared(customers)
    persons = await records.by_ids([owner.id, f"{entity.id}/{made_id()}"], soon())

    assert opened.keys() == {entity.id, f"{entity.id}/{owner.id}"}
    assert archived == {}
    assert [one.status for one in persons] == ["canceled"] * 2
    assert all(one.is_closed for one in of_identity(persons))


@pytest.mark.parametrize(
    ("ours", "told", "differs"),
    [
        ({"email": "info@müller.de"}, {"email": "info@xn--mller-kva.de"}, False),
        ({"email": "info@müller.de"}, {"email": "office@acme-tools.com"}, True),
        ({"email": "info@müller.de"}, {}, True),
        ({"email": "büro@acme-tools.com"}, {}, False),
        ({"email": "büro@acme-tools.com"}, {"email": "office@acme-tools.com"}, False),
        ({"email": f"office@{'.'.join(['acme' * 12] * 4)}.com"}, {}, False),
        ({"business_name": "x" * 255}, {"name": "x" * 200}, False),
        ({"business_name": "x" * 255}, {"name": "x" * 199}, True),
        (
            {"business_address": {**HARBOR_STREET, "street_1": "1" * 255}},
            {"address": {**ADDRESS, "line1": "1" * 200}},
            False,
        ),
    ],
)
async def test_fields_are_compared_as_increase_is_told_them(
    bank: Bank, ours: dict[str, Any], told: dict[str, Any], differs: bool
) -> None:
    entity = await make_entity(bank.sdk, key=str(made_id()), **told)
    records = parties.customers(bank.client, parties.identity_record)
    [business, person] = await all_of(records)
    our_business = r.our_business(
        identity_id=entity.id,
        core_id=None,
        fields=business.fields | ours,
        ein=business.fields["ein"],
    )
    our_person = r.our_person(
        identity_id=person.identity_id,
        core_id=None,
        fields=person.fields,
        date_of_birth=person.fields["date_of_birth"],
    )
    customer = r.our_customer(parties=[our_business, our_person], accounts=[])
    nothing: FakeList[Any] = FakeList([], "")
    onboarding = FakeOnboarding([customer])
    held = lists_with_holders(CustomerLists(records, nothing, nothing), onboarding)

    findings = await compared(CustomerComparison(onboarding, held, DIGEST))

    found = findings.get(customer.customer_id, [])
    assert isinstance(found, list)
    assert [one.kind for one in found] == (["identity_fields"] if differs else [])


def comparisons(bank: Bank, onboarding: FakeOnboarding) -> list[Comparison]:
    held = CustomerLists(
        parties.customers(bank.client, parties.identity_record),
        parties.customers(bank.client, parties.core_customer),
        lists.accounts(bank.client),
    )
    external_accounts = lists.external_accounts(bank.client)
    return [
        CustomerComparison(onboarding, lists_with_holders(held, onboarding), DIGEST),
        ExternalAccountComparison(
            onboarding, external_accounts_with_holders(external_accounts, onboarding), DIGEST
        ),
    ]


async def made_under(bank: Bank, *keys: str) -> None:
    for key in keys:
        await bank.sdk.external_accounts.create(
            account_number="123456789012",
            routing_number="021000021",
            description="Supplier",
            idempotency_key=key,
        )


async def test_pages_leave_out_what_others_made_and_single_records_stand_under_their_ids(
    bank: Bank,
) -> None:
    await made_under(bank, "a key of others", str(uuid4()), str(made_id()), str(made_id()))
    records = lists.external_accounts(bank.client)

    listed = await all_of(records)
    ids: Sequence[str] = [one.external_account_id for one in listed]

    assert len(ids) == 2
    assert await records.of_customers([str(made_id())], soon()) == []
    [found] = await records.of_customers([ids[0], str(made_id())], soon())
    assert found.external_account_id == ids[0]


@pytest.mark.parametrize("prefix", ["", "sandbox_", "of_a_later_release_"])
async def test_what_we_do_not_hold_is_reported_whatever_its_id_looks_like(
    bank: Bank, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "ID_PREFIX", prefix)
    entity = await make_entity(bank.sdk, key=str(made_id()))
    [owner] = owners_of(entity)
    account = await bank.sdk.accounts.create(
        name="Operating", entity_id=entity.id, idempotency_key=str(made_id())
    )
    await made_under(bank, str(made_id()))
    [external] = (await bank.sdk.external_accounts.list()).data
    onboarding = FakeOnboarding()

    findings = await compared(*comparisons(bank, onboarding))

    found = [one for finding in findings.values() if isinstance(finding, list) for one in finding]
    assert all(one.id.startswith(prefix) for one in (entity, owner, account, external))
    assert {(one.kind, one.subject) for one in found} == {
        ("identity_customer_unknown_to_us", entity.id),
        ("identity_customer_unknown_to_us", owner.id),
        ("core_customer_unknown_to_us", entity.id),
        ("core_customer_unknown_to_us", owner.id),
        ("account_unknown_to_us", account.id),
        ("external_account_unknown_to_us", external.id),
    }


async def test_what_an_open_command_has_made_is_in_flight_until_the_command_is_final(
    bank: Bank,
) -> None:
    keys = [str(made_id()) for _ in range(3)]
    entity = await make_entity(bank.sdk, key=keys[0])
    [owner] = owners_of(entity)
    account = await bank.sdk.accounts.create(
        name="Operating", entity_id=entity.id, idempotency_key=keys[1]
    )
    await made_under(bank, keys[2])
    [external] = (await bank.sdk.external_accounts.list()).data
    customer = r.our_customer(parties=[], accounts=[], command_open=True)
    onboarding = FakeOnboarding([customer], steps=dict.fromkeys(keys, customer.customer_id))
    books = comparisons(bank, onboarding)
    unknown = {entity.id, f"{entity.id}/{owner.id}", account.id, external.id}

    under_way = await compared(*books)
    onboarding.held = [customer.model_copy(update={"command_open": False})]
    final = await compared(*books)

    assert under_way == dict.fromkeys({customer.customer_id, *unknown}, IN_FLIGHT)
    assert final.keys() == unknown
    assert all(isinstance(finding, list) and finding for finding in final.values())


async def test_owners_after_their_businesses_are_found_without_requests_of_their_own(
    bank: Bank,
) -> None:
    entities = [await make_entity(bank.sdk, key=str(made_id())) for _ in range(9)]
    owners = [one.id for made in entities for one in owners_of(made)]
    records = parties.customers(bank.client, parties.identity_record)

    found = await records.by_ids([*(made.id for made in entities), *owners], soon())

    assert len(found) == 18
    assert bank.requests["GET /entities/{id}"] == 9
    assert "GET /entity_beneficial_owners/{id}" not in bank.requests
