"""What an operator may limit a key to."""

from __future__ import annotations

import pytest

from libs.contracts.operating.keys import MOST_NETWORKS
from libs.contracts.principal import Family, Scope
from services.gateway.key_limits import networks_of, wrong_networks, wrong_scopes


def test_networks_have_one_form() -> None:
    assert networks_of(["203.0.113.7", "203.0.113.7/32", "2001:DB8::/32"]) == {
        "203.0.113.7/32",
        "2001:db8::/32",
    }


@pytest.mark.parametrize(
    "text",
    ["", "everywhere", "203.0.113.7/24", "203.0.113.0/33", "::ffff:203.0.113.7/128", "fe80::%a/64"],
)
def test_what_is_no_network_is_refused_in_a_sentence(text: str) -> None:
    [error] = wrong_networks([text], "add")

    assert error["loc"] == ["body", "add"]
    assert "name " in error["msg"]


def test_a_key_is_limited_to_so_many_networks() -> None:
    networks = [f"203.0.113.{number}" for number in range(MOST_NETWORKS + 1)]

    [error] = wrong_networks(networks, "add")

    assert "at most" in error["msg"]
    assert wrong_networks(networks[1:], "add") == []


def test_a_scope_of_another_family_is_refused() -> None:
    [error] = wrong_scopes(Family.CUSTOMER, [Scope.CUSTOMERS_WRITE], "scopes")

    assert "cannot have customers:write" in error["msg"]
    assert wrong_scopes(Family.CUSTOMER, [Scope.WIRES_WRITE], "scopes") == []
