"""What an operator may limit a key to."""

from __future__ import annotations

import pytest

from libs.contracts.errors import Invalid
from libs.contracts.operating.keys import MOST_NETWORKS
from libs.contracts.principal import Family, Scope
from services.gateway.key_limits import networks_of, scopes_of


def test_networks_have_one_form() -> None:
    assert networks_of(["203.0.113.7", "203.0.113.7/32", "2001:DB8::/32"], "add") == {
        "203.0.113.7/32",
        "2001:db8::/32",
    }


@pytest.mark.parametrize(
    "text",
    ["", "everywhere", "203.0.113.7/24", "203.0.113.0/33", "::ffff:203.0.113.7/128", "fe80::%a/64"],
)
def test_what_is_no_network_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        networks_of([text], "add")

    [error] = refusal.value.errors
    assert error["loc"] == ["body", "add"]
    assert "name " in error["msg"]


def test_a_key_is_limited_to_so_many_networks() -> None:
    with pytest.raises(Invalid) as refusal:
        networks_of([f"203.0.113.{number}" for number in range(MOST_NETWORKS + 1)], "add")

    assert "at most" in refusal.value.errors[0]["msg"]


def test_a_scope_of_another_family_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        scopes_of(Family.CUSTOMER, [Scope.CUSTOMERS_WRITE], "scopes")

    assert "cannot have customers:write" in refusal.value.errors[0]["msg"]
