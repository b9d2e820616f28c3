"""What the gateway refuses stands in its audit: who, from where, and how often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.integration.gateway.desk import Desk, until
from tests.support.api import signed_headers

CUSTOMERS = "/partner/reseller/customers"


async def test_refused_requests_are_in_the_audit_with_their_count(desk: Desk) -> None:
    forged, narrow = await desk.key(), await desk.key(scopes=frozenset())
    for _ in range(3):
        headers = signed_headers(forged, "GET", CUSTOMERS, b"") | {"X-API-SIGNATURE": "0" * 64}
        assert (await desk.send(headers, CUSTOMERS)).code == "invalid_signature"
    unknown = replace(forged, subscription_key="sub_" + "0" * 24)
    assert (await desk.api(unknown).get(CUSTOMERS)).code == "unknown_subscription_key"
    assert (await desk.api(narrow).get(CUSTOMERS)).code == "insufficient_scope"

    async def refusals() -> dict[tuple[str, str], list[dict[str, Any]]]:
        rows = await desk.execute("SELECT entry FROM audit ORDER BY day, number")
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for entry in (json.loads(row.entry) for row in rows):
            found.setdefault((entry["actor"], entry["outcome"]), []).append(entry)
        return found

    async def are_there() -> bool:
        found = await refusals()
        signatures = found.get((forged.subscription_key, "invalid_signature"), [])
        return (
            sum(one["count"] for one in signatures) == 3
            and (narrow.subscription_key, "insufficient_scope") in found
            and ("", "unknown_subscription_key") in found
        )

    await until(are_there)
    [scope] = (await refusals())[narrow.subscription_key, "insufficient_scope"]
    assert (scope["address"], scope["count"]) == ("127.0.0.1", 1)
    assert scope["action"] == "onboarding.list_customers"
