from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from typing import Any

import pytest

from libs.contracts.customers import CustomerStatus
from libs.contracts.reconciliation import RecordedCustomers
from services.reconciliation.handlers.customers import CustomerComparison, CustomerLists
from services.reconciliation.handlers.external_accounts import ExternalAccountComparison
from services.reconciliation.models import IN_FLIGHT, Difference
from services.reconciliation.ports import IdentityRecord
from services.reconciliation.sensitive_digests import Digest, digest_by
from tests.unit.reconciliation import records as r
from tests.unit.reconciliation.fakes import DIGEST, FakeList, FakeOnboarding, compared, soon


class Books:
    """Both sides' books, which agree until a test changes one."""

    def __init__(self) -> None:
        self.ours = FakeOnboarding([r.our_customer()], [r.our_external_account()])
        self.identity = FakeList([r.identity_business(), r.identity_person()], "identity_id")
        self.core = FakeList([r.core_business(), r.core_person()], "core_id")
        self.external = FakeList([r.core_external_account()], "external_account_id")
        self.accounts = FakeList([r.core_account()], "account_id")

    def customers(self) -> CustomerComparison:
        providers = CustomerLists(self.identity, self.core, self.accounts)
        return CustomerComparison(self.ours, providers, DIGEST)

    def external_accounts(self, digest: Digest = DIGEST) -> ExternalAccountComparison:
        return ExternalAccountComparison(self.ours, self.external, digest)

    async def differences(self) -> list[Difference]:
        found: list[Difference] = []
        for finding in (await compared(self.customers(), self.external_accounts())).values():
            assert isinstance(finding, list)
            found += finding
        return found

    async def names(self) -> set[tuple[str, str]]:
        return {(one.kind, one.subject) for one in await self.differences()}


@pytest.fixture
def books() -> Books:
    return Books()


async def test_books_that_say_the_same_in_other_words_agree(books: Books) -> None:
    assert await books.names() == set()


@pytest.mark.parametrize(
    ("rows", "row", "kind"),
    [
        ("identity", r.identity_business(identity_id="x"), "identity_customer_unknown_to_us"),
        ("identity", r.identity_person(identity_id="x"), "identity_customer_unknown_to_us"),
        ("core", r.core_business(core_id="x"), "core_customer_unknown_to_us"),
        ("core", r.core_person(core_id="x"), "core_customer_unknown_to_us"),
        ("accounts", r.core_account(account_id="x"), "account_unknown_to_us"),
        (
            "external",
            r.core_external_account(external_account_id="x", primary=False),
            "external_account_unknown_to_us",
        ),
    ],
)
async def test_a_second_record_of_the_same_customer_is_found(
    books: Books, rows: str, row: Any, kind: str
) -> None:
    getattr(books, rows).rows.append(row)

    assert await books.names() == {(kind, "x")}


async def test_records_of_a_customer_that_is_nobody_of_ours_are_found(books: Books) -> None:
    other = {"customer_id": "c_9"}
    books.identity.rows.append(r.identity_business(identity_id="idn_9", **other))
    books.core.rows.append(
        r.core_person(core_id="cus_9", customer_id="p_9", business_customer_id="c_9")
    )
    books.accounts.rows.append(r.core_account(account_id="acc_9", **other))
    books.external.rows.append(r.core_external_account(external_account_id="ext_9", **other))

    assert await books.names() == {
        ("identity_customer_unknown_to_us", "idn_9"),
        ("core_customer_unknown_to_us", "cus_9"),
        ("account_unknown_to_us", "acc_9"),
        ("external_account_unknown_to_us", "ext_9"),
    }


async def test_a_difference_names_the_tenant_of_a_customer_of_ours_alone(books: Books) -> None:
    books.identity.rows[0] = r.identity_business(status="denied")
    books.core.rows.append(r.core_business(core_id="x"))
    books.accounts.rows.append(r.core_account(account_id="acc_9", customer_id="c_9"))
    books.accounts.rows[0] = r.core_account(status="restricted")
    books.external.rows.clear()

    found = await books.differences()

    assert {one.kind: one.ids.get("tenant") for one in found} == {
        "identity_status": "t_1",
        "core_customer_unknown_to_us": "t_1",
        "account_status": "t_1",
        "account_unknown_to_us": None,
        "external_account_missing_at_provider": "t_1",
    }


async def test_a_record_is_found_under_one_key_and_alike_with_and_without_other_keys(
    books: Books,
) -> None:
    books.core.rows += [
        r.core_business(core_id="cus_9", customer_id="c_9"),
        r.core_person(core_id="cus_10", customer_id="p_9", business_customer_id="c_9"),
        r.core_person(core_id="cus_11", customer_id="p_9", business_customer_id="c_1"),
        r.core_person(core_id="cus_12"),
    ]
    comparison = books.customers()
    keys = ["c_9/p_9", "c_9", "c_1/p_9", "c_1"]

    together = await comparison.look(keys, soon())
    apart = {key: (await comparison.look([key], soon()))[key] for key in keys}

    assert together == apart
    assert {
        key: [one.subject for one in finding] if isinstance(finding, list) else finding
        for key, finding in together.items()
    } == {"c_9/p_9": ["cus_10"], "c_9": ["cus_9"], "c_1/p_9": ["cus_11"], "c_1": ["cus_12"]}


async def test_records_that_were_closed_again_need_no_owner(books: Books) -> None:
    other = {"customer_id": "c_9"}
    books.identity.rows.append(r.identity_business(identity_id="idn_9", status="canceled", **other))
    books.core.rows.append(r.core_business(core_id="cus_9", status="closed", **other))
    books.accounts.rows.append(r.core_account(account_id="acc_9", status="closed", **other))
    books.external.rows.append(
        r.core_external_account(external_account_id="ext_9", status="closed", **other)
    )

    assert await books.names() == set()


async def test_what_the_providers_lost_is_found(books: Books) -> None:
    for rows in (books.identity, books.core, books.external, books.accounts):
        rows.rows.clear()

    assert await books.names() == {
        ("identity_customer_missing", "idn_1"),
        ("identity_customer_missing", "idn_2"),
        ("core_customer_missing", "cus_1"),
        ("core_customer_missing", "cus_2"),
        ("external_account_missing_at_provider", "ext_1"),
        ("account_missing_at_provider", "acc_1"),
    }


@pytest.mark.parametrize(
    ("rows", "row", "kind"),
    [
        ("identity", r.identity_business(status="pending_review"), "identity_status"),
        ("core", r.core_business(status="closed"), "core_status"),
        ("accounts", r.core_account(status="closed"), "account_status"),
        ("accounts", r.core_account(account_number="101"), "account_number"),
        ("external", r.core_external_account(primary=False), "external_account_primary"),
        ("external", r.core_external_account(account_number="7"), "external_account_number"),
        (
            "external",
            r.core_external_account(status="closed"),
            "external_account_closed_at_provider",
        ),
    ],
)
async def test_each_mismatch_of_a_customer_has_its_kind(
    books: Books, rows: str, row: Any, kind: str
) -> None:
    getattr(books, rows).rows[0] = row

    [(found, _)] = await books.names()

    assert found == kind


async def test_numbers_of_an_account_that_is_closed_on_both_sides_are_not_compared(
    books: Books,
) -> None:
    books.accounts.rows[0] = r.core_account(status="closed", account_number="")
    [account] = r.our_customer().accounts
    closed = account.model_copy(update={"status": "closed"})
    books.ours.held = [r.our_customer(accounts=[closed])]

    assert await books.names() == set()


async def test_a_field_that_differs_shows_both_values_and_a_sensitive_one_its_name(
    books: Books,
) -> None:
    fields = {**r.identity_business().fields, "business_name": "Other", "ein": "987654321"}
    books.identity.rows[0] = r.identity_business(fields=fields)

    [found] = await books.differences()

    assert found.kind == "identity_fields"
    assert found.ours == {"business_name": "Anvil Works", "ein": "[differs]"}
    assert found.theirs == {"business_name": "Other", "ein": "[differs]"}


async def test_a_field_that_only_the_provider_has_is_named_and_not_shown(books: Books) -> None:
    books.core.rows[1] = r.core_person(fields={**r.core_person().fields, "ssn": "001020003"})

    [found] = await books.differences()

    assert (found.kind, found.ours, found.theirs) == ("core_fields", {}, {"ssn": "[differs]"})


async def test_numbers_of_external_accounts_are_never_shown(books: Books) -> None:
    books.external.rows[0] = r.core_external_account(account_number="7999999")

    [found] = await books.differences()

    assert "7000001" not in repr(found)
    assert "7999999" not in repr(found)


async def test_the_same_sensitive_values_are_the_same_difference_and_others_another_one(
    books: Books,
) -> None:
    async def found(ein: str, number: str, ours: str = "7000001") -> dict[str, str]:
        fields = {**r.identity_business().fields, "ein": ein}
        books.identity.rows[0] = r.identity_business(fields=fields)
        books.external.rows[0] = r.core_external_account(account_number=number)
        books.ours.linked[0] = r.our_external_account(account_number=ours)
        return {one.kind: one.fingerprint for one in await books.differences()}

    first = await found("987654321", "7999999")
    same = await found("987654321", "7999999")
    theirs = await found("987654322", "7999998")
    ours = await found("987654321", "7999999", ours="7000002")

    kinds = ("identity_fields", "external_account_number")
    assert first.keys() == set(kinds)
    assert same == first
    assert all(theirs[kind] != first[kind] for kind in kinds)
    assert ours["external_account_number"] != first["external_account_number"]


async def test_sensitive_values_cannot_be_tried_against_a_fingerprint_without_the_key(
    books: Books,
) -> None:
    books.external.rows[0] = r.core_external_account(account_number="7999999")

    async def found(digest: Digest) -> str:
        looked = await books.external_accounts(digest).look(["ext_1"], soon())
        finding = looked["ext_1"]
        assert isinstance(finding, list)
        return finding[0].fingerprint

    other = digest_by(f"k1:{base64.b64encode(bytes(range(32))).decode()}")

    assert await found(DIGEST) != await found(other)


async def test_an_account_that_another_customer_has_at_the_bank_is_found_with_its_owner(
    books: Books,
) -> None:
    books.accounts.rows[0] = r.core_account(customer_id="c_9")

    found = {one.kind: one for one in await books.differences()}

    assert found.keys() == {"account_owner", "account_unknown_to_us"}
    theirs = found["account_owner"].theirs
    assert theirs is not None
    assert theirs["customer_id"] == "c_9"


async def test_an_external_account_of_another_customer_at_the_bank_is_found_with_its_owner(
    books: Books,
) -> None:
    books.external.rows[0] = r.core_external_account(customer_id="c_9")

    [found] = await books.differences()

    assert (found.kind, found.ids["customer_id"]) == ("external_account_owner", "c_1")
    assert found.theirs is not None
    assert found.theirs["customer_id"] == "c_9"


async def test_a_denied_customer_has_nothing_open_at_core_banking(books: Books) -> None:
    books.ours.held[0] = r.our_customer(status=CustomerStatus.DENIED)

    assert await books.names() == {
        ("core_status", "cus_1"),
        ("core_status", "cus_2"),
        ("account_of_denied_customer", "acc_1"),
    }


@pytest.mark.parametrize("ended", ["denied", "canceled"])
async def test_a_customer_with_a_denied_or_canceled_party_is_not_approved(
    books: Books, ended: str
) -> None:
    """As the release before leaves it where it has not seen the review."""
    parties = [r.our_business(), r.our_person(identity_status=ended)]
    books.ours.held[0] = r.our_customer(parties=parties)
    books.identity.rows[1] = r.identity_person(status=ended)

    [found] = await books.differences()

    assert (found.kind, found.subject) == ("identity_status", "idn_2")
    assert (found.ours, found.theirs) == ({"status": "approved"}, {"status": ended})


async def test_a_customer_with_an_open_command_is_in_flight(books: Books) -> None:
    books.ours.held[0] = r.our_customer(command_open=True)
    books.core.rows.clear()
    books.external.rows.clear()

    found = await compared(books.customers(), books.external_accounts())

    assert found == {"c_1": IN_FLIGHT, "ext_1": IN_FLIGHT}


async def test_when_one_list_cannot_be_read_the_others_are_no_longer_asked(books: Books) -> None:
    ended: list[str] = []

    class Broken(FakeList[Any]):
        async def by_ids(self, ids: Any, deadline: float) -> Any:
            raise ConnectionError("the other side is away")

    class Slow(FakeList[Any]):
        async def by_ids(self, ids: Any, deadline: float) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("slow")

    slow, broken = Slow([], "core_id"), Broken([], "account_id")
    comparison = CustomerComparison(books.ours, CustomerLists(books.identity, slow, broken), DIGEST)

    with pytest.raises(ConnectionError):
        await comparison.look(["c_1"], soon())

    assert ended == ["slow"]


async def test_records_of_businesses_are_asked_for_before_those_of_persons(books: Books) -> None:
    books.ours.held = [r.our_customer(parties=[r.our_person(), r.our_business()])]
    asked: list[Sequence[str]] = []

    class Asked(FakeList[IdentityRecord]):
        async def by_ids(self, ids: Sequence[str], deadline: float) -> list[IdentityRecord]:
            asked.append(ids)
            return await super().by_ids(ids, deadline)

    books.identity = Asked(books.identity.rows, "identity_id")

    await books.differences()

    assert asked[0] == ["idn_1", "idn_2"]


def test_customers_are_read_as_an_onboarding_of_the_release_before_tells_them() -> None:
    told = r.our_external_account().model_dump(exclude={"customer_id"})
    customer = r.our_customer().model_dump() | {"external_accounts": [told]}

    read = RecordedCustomers.model_validate({"customers": [customer], "next_after": None})

    assert [one.external_account_id for one in read.customers[0].external_accounts] == ["ext_1"]
