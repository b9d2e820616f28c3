"""Reconciliation with a bank that knows none of our customers' ids: what differs is found."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from deploy.local import banks
from tests.e2e.wires.hands import Sender, new_sender
from tests.support.ids import made_id
from tests.support.increase_clients import client_of, link_external
from tests.support.live import Live
from tests.support.people import new_key
from tests.support.reconciling import assert_reconciled, reconcile
from tests.support.stack import BANK, Stack

pytestmark = pytest.mark.skipif(
    BANK != banks.INCREASE_FAKE, reason="make test BANK=increase-fake has a bank without our ids"
)


async def patch(stack: Stack, object_id: str, **fields: Any) -> None:
    """Change an object at the bank, as no request does."""
    url = f"{stack.increase_url}/fake/objects/{object_id}"
    async with (
        aiohttp.ClientSession() as session,
        session.patch(url, json={"fields": fields}) as answer,
    ):
        assert answer.status == 200, await answer.text()


async def wires_at_bank(stack: Stack, account_id: str) -> list[dict[str, Any]]:
    url = f"{stack.increase_url}/fake/truth/wires?account_id={account_id}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        rows: list[dict[str, Any]] = (await answer.json())["wires"]
        return rows


async def sent_wires(sender: Sender) -> list[dict[str, Any]]:
    """Three wires that the bank has completed."""
    told = await sender.sent_at_once(new_key() for _ in range(3))
    await sender.finals(told)
    await sender.completed_at_bank(3)
    return await wires_at_bank(sender.live.deployment.stack, sender.account_id)


async def test_what_differs_at_the_bank_is_found_and_gone_once_it_is_mended(live: Live) -> None:
    stack = live.deployment.stack
    sender = await new_sender(live, "1000.00")
    other, moved, lost = await sent_wires(sender)
    await assert_reconciled(stack)
    key = lost["idempotency_key"]
    async with client_of(stack.increase_url, stack.env["BANKSIDE_INCREASE_FAKE_KEY"]) as sdk:
        account = await sdk.accounts.retrieve(sender.account_id)
        entity = await sdk.entities.retrieve(account.entity_id)
        assert entity.corporation is not None
        stray = await link_external(sdk)
    changes: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (other["id"], {"amount": 1}, {"amount": other["amount"]}),
        (moved["id"], {"status": "rejected"}, {"status": moved["status"]}),
        (lost["id"], {"idempotency_key": str(made_id())}, {"idempotency_key": key}),
        (account.id, {"status": "closed"}, {"status": "open"}),
        (sender.external_account_id, {"status": "archived"}, {"status": "active"}),
        (
            entity.id,
            {"corporation": {"name": "Another Name"}},
            {"corporation": {"name": entity.corporation.name}},
        ),
        (stray.id, {"idempotency_key": str(made_id())}, {"status": "archived"}),
    ]
    for object_id, changed, _ in changes:
        await patch(stack, object_id, **changed)

    _, found = await reconcile(stack)
    for object_id, _, restored in changes:
        await patch(stack, object_id, **restored)

    kinds = {one.kind for one in found}
    assert kinds == {
        "wire_amount",
        "wire_state",
        "wire_missing_at_provider",
        "wire_unknown_to_us",
        "account_status",
        "external_account_closed_at_provider",
        "external_account_unknown_to_us",
        "identity_fields",
        "core_fields",
    }
    await assert_reconciled(stack)
