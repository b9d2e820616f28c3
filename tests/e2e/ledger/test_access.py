"""Who may read an account's ledger: nobody else can tell that it exists."""

from __future__ import annotations

import pytest

from tests.e2e.ledger.hands import NEEDED, PATHS, Account, target
from tests.support.live import Live


@pytest.mark.parametrize("what", PATHS)
async def test_only_the_owner_reads_it(
    live: Live, quiet: Account, others: list[Account], what: str
) -> None:
    neighbour, foreign = others
    query = NEEDED.get(what, {})
    path = target(what, quiet.account_id, **query)
    if PATHS[what].startswith("/customer"):
        strangers = [await neighbour.owner(what), await foreign.owner(what)]
    else:
        strangers = [await live.of_tenant("ledger-stranger")]

    own = await quiet.read(what, **query)
    refused = [await stranger.get(path) for stranger in strangers]
    owner = await quiet.owner(what)
    unknown = await owner.get(target(what, "acc_00000000", **query))

    assert own.status == 200
    for answer in refused:
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.body["detail"] == unknown.body["detail"]
    assert (unknown.status, unknown.code) == (404, "not_found")


@pytest.mark.parametrize("what", PATHS)
async def test_a_key_of_the_other_family_is_refused(live: Live, quiet: Account, what: str) -> None:
    of_customers = PATHS[what].startswith("/customer")
    wrong = live.partner if of_customers else await live.of_customer(quiet.customer_id)

    answer = await wrong.get(target(what, quiet.account_id))

    assert (answer.status, answer.code) == (403, "wrong_route_family")


@pytest.mark.parametrize("what", PATHS)
@pytest.mark.parametrize("name", ["account_id", "sort"])
async def test_unknown_parameters_are_refused(quiet: Account, what: str, name: str) -> None:
    answer = await quiet.read(what, **NEEDED.get(what, {}), **{name: "x"})

    assert answer.status == 422
    assert [(error["loc"], error["type"]) for error in answer.body["detail"]] == [
        (["query", name], "extra_forbidden")
    ]


@pytest.mark.parametrize("what", PATHS)
async def test_a_failing_provider_is_told_as_such(live: Live, quiet: Account, what: str) -> None:
    if what == "settlement-calculations":
        live.bank.needs("has_reserves")
    query = NEEDED.get(what, {})

    await live.bank.fault("financial", f"list_{what}".replace("-", "_"), "error")
    failing = await quiet.read(what, **query)
    await live.bank.heal()
    healed = await quiet.read(what, **query)

    assert (failing.status, failing.code) == (502, "provider_error")
    assert healed.status == 200
