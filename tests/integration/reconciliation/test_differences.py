"""Differences made on purpose: each is listed within one run, and gone after it is mended."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

from tests.e2e.wires.hands import Sender
from tests.integration.reconciliation.books import Books
from tests.support.people import bank_account
from tests.support.waiting import eventually


async def test_books_that_agree_have_no_difference(books: Books, sender: Sender) -> None:
    transaction_id = await sender.sent()
    await sender.has_state(transaction_id, "completed")

    found = await books.differences()

    assert found == []


async def test_a_wire_that_we_lack_is_a_difference_until_we_have_it(
    books: Books, sender: Sender
) -> None:
    transaction_id = str(uuid.uuid4())
    await books.live.bank.simulate(
        "wires",
        transaction_id=transaction_id,
        account_id=sender.account_id,
        external_account_id=sender.external_account_id,
        amount="12.00",
        purpose="Nobody asked for it",
    )
    await eventually("the bank has completed it", lambda: _is_completed(sender, transaction_id))

    found = await books.differences()
    await _record_wire(books, sender, transaction_id, Decimal("12.00"))
    mended = await books.kinds()

    [lacking] = [one for one in found if one.kind == "wire_unknown_to_us"]
    assert lacking.subject == transaction_id
    assert lacking.ids == {"transaction_id": transaction_id, "account_id": sender.account_id}
    assert lacking.ours is None
    assert lacking.theirs is not None
    assert (lacking.theirs["state"], lacking.theirs["posted"]) == ("completed", Decimal("-12.00"))
    assert "wire_unknown_to_us" not in mended


async def test_an_account_without_an_owner_is_a_difference_until_it_is_closed(
    books: Books, sender: Sender
) -> None:
    customer_id = sender.account.customer_id
    opened = await books.live.bank.simulate(
        "accounts", customer_id=customer_id, account_title="Nobody's"
    )

    [found] = await books.differences()
    await books.live.bank.change(opened["account_id"], "close")
    mended = await books.differences()

    assert (found.kind, found.subject) == ("account_unknown_to_us", opened["account_id"])
    assert found.ids["customer_id"] == customer_id
    assert mended == []


async def test_a_field_that_was_changed_at_core_is_a_difference_that_shows_both_values(
    books: Books, sender: Sender
) -> None:
    core_id = await books.core_id(sender.account.customer_id)
    original = await _field_at_core(books, core_id, "business_name")
    await _change(books, f"core/customers/{core_id}", business_name="Another Name")

    [found] = await books.differences()
    await _change(books, f"core/customers/{core_id}", business_name=original)
    mended = await books.differences()

    assert (found.kind, found.subject) == ("core_fields", core_id)
    assert found.ours == {"business_name": original}
    assert found.theirs == {"business_name": "Another Name"}
    assert mended == []


async def test_a_sensitive_field_that_was_changed_at_identity_is_named_and_never_shown(
    books: Books, sender: Sender
) -> None:
    identity_id = await books.identity_id(sender.account.customer_id)
    original = await books.databases["provider_sandbox"].fetchval(
        "SELECT fields::jsonb->>'ein' FROM identity_record WHERE identity_id = $1", identity_id
    )
    await _change(books, f"identity/customers/{identity_id}", ein="123456789")

    [found] = await books.differences()
    stored = await books.databases["reconciliation"].fetchval(
        "SELECT string_agg(difference::text, ' ') FROM difference"
    )
    await _change(books, f"identity/customers/{identity_id}", ein=original)
    mended = await books.differences()

    assert (found.kind, found.subject) == ("identity_fields", identity_id)
    assert (found.ours, found.theirs) == ({"ein": "[differs]"}, {"ein": "[differs]"})
    assert original not in stored
    assert "123456789" not in stored
    assert mended == []


async def test_a_primary_that_was_moved_is_a_difference_of_both_external_accounts(
    books: Books, sender: Sender
) -> None:
    first = sender.external_account_id
    second = await _second_external_account(sender)
    await books.live.bank.simulate(f"external-accounts/{first}/primary")

    found = await books.differences()
    await books.live.bank.simulate(f"external-accounts/{second}/primary")
    mended = await books.differences()

    assert {(one.kind, one.subject) for one in found} == {
        ("external_account_primary", first),
        ("external_account_primary", second),
    }
    assert mended == []


async def test_a_balance_that_is_not_the_sum_of_its_postings_is_a_difference(
    books: Books, sender: Sender
) -> None:
    change = "UPDATE account SET total = total + $2 WHERE account_id = $1"
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("0.01"))

    [found] = await books.differences()
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("-0.01"))
    mended = await books.differences()

    assert (found.kind, found.subject) == ("balance", sender.account_id)
    assert found.ours is not None
    assert found.theirs is not None
    assert (found.ours["posted"], found.theirs["total"]) == (Decimal(1000), Decimal("1000.01"))
    assert mended == []


async def test_an_account_that_we_forgot_differs_from_the_bank_and_from_what_was_told(
    books: Books, sender: Sender
) -> None:
    onboarding = books.databases["onboarding"]
    forgotten = await onboarding.fetchrow(
        "DELETE FROM accounts WHERE account_id = $1 RETURNING *", sender.account_id
    )

    found = await books.differences()
    await onboarding.execute(
        "INSERT INTO accounts SELECT * FROM jsonb_populate_record(NULL::accounts, $1::jsonb)"
        # The feed may have told of the account since.
        " ON CONFLICT (account_id) DO UPDATE SET tenant = excluded.tenant,"
        " customer_id = excluded.customer_id, account_number = excluded.account_number",
        _json(dict(forgotten)),
    )
    mended = await books.differences()

    assert {(one.kind, one.subject) for one in found} == {
        ("account_unknown_to_us", sender.account_id),
        ("told_account", sender.account_id),
    }
    assert mended == []


async def test_locations_that_are_not_what_was_swept_are_a_difference(
    books: Books, sender: Sender
) -> None:
    loaded = await books.live.bank.simulate("deposit-locations", account_id=sender.account_id)
    change = (
        "UPDATE deposit_location SET balance = balance + $2 WHERE (account_id, location_id) ="
        " (SELECT account_id, min(location_id) FROM deposit_location WHERE account_id = $1 GROUP BY 1)"
    )
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("1.00"))

    [found] = await books.differences()
    await books.execute("provider_sandbox", change, sender.account_id, Decimal("-1.00"))
    mended = await books.differences()

    assert found.kind == "deposit_locations"
    assert found.ids == {"account_id": sender.account_id, "load_date": loaded["as_of_date"]}
    assert mended == []


async def test_a_feed_beyond_the_providers_newest_entry_is_a_difference(
    books: Books, sender: Sender
) -> None:
    await sender.has_state(await sender.sent(), "completed")
    change = "UPDATE feed_cursor SET position = position + $1 WHERE feed = 'core'"
    await books.execute("payments", change, 1_000_000)

    [found] = await books.differences()
    await books.execute("payments", change, -1_000_000)
    mended = await books.differences()

    assert (found.kind, found.subject) == ("feed_went_back", "payments/core")
    assert mended == []


async def test_a_wire_that_we_hold_in_another_state_differs_in_state_and_debit(
    books: Books, sender: Sender
) -> None:
    transaction_id = await sender.sent()
    await sender.has_state(transaction_id, "completed")
    change = "UPDATE wires SET state = $2 WHERE transaction_id = $1"
    await books.execute("payments", change, uuid.UUID(transaction_id), "submitted")

    kinds = await books.kinds()
    await books.execute("payments", change, uuid.UUID(transaction_id), "completed")
    mended = await books.differences()

    assert kinds == Counter({"wire_state": 1})
    assert mended == []


async def _is_completed(sender: Sender, transaction_id: str) -> bool:
    return (await sender.at_bank()).get(transaction_id) == "completed"


async def _record_wire(books: Books, sender: Sender, transaction_id: str, amount: Decimal) -> None:
    """As an operator would restore it: accepted and completed."""
    await books.execute(
        "payments",
        "INSERT INTO wires (transaction_id, tenant, customer_id, sending_account_id, external_account_id, amount,"
        " purpose, state, sequence, send_begun_at, created_at) VALUES ($1, 'anvil', $2, $3, $4, $5, 'Restored',"
        " 'completed', 3, clock_timestamp(), clock_timestamp())",
        uuid.UUID(transaction_id),
        sender.account.customer_id,
        sender.account_id,
        sender.external_account_id,
        amount,
    )
    await books.execute(
        "payments",
        "INSERT INTO wire_history (transaction_id, sequence, state, at) SELECT $1, number, state, clock_timestamp()"
        " FROM unnest(ARRAY['pending_submission', 'submitted', 'completed'])"
        " WITH ORDINALITY AS step (state, number)",
        uuid.UUID(transaction_id),
    )


async def _change(books: Books, path: str, **fields: str) -> None:
    await books.live.bank.patch(path, fields=fields)


async def _field_at_core(books: Books, core_id: str, name: str) -> str:
    return str(
        await books.databases["provider_sandbox"].fetchval(
            "SELECT fields::jsonb->>$2 FROM core_customer WHERE core_id = $1", core_id, name
        )
    )


async def _second_external_account(sender: Sender) -> str:
    """Linked by the customer's partner, and primary from then on."""
    answer = await sender.live.partner.post(
        f"/partner/reseller/customers/external_bank_account/{sender.external_account_id}",
        {"external_bank_account": bank_account()},
    )
    return str(answer.data["external_bank_account_id"])


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, default=str)
