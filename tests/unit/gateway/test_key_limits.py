"""What an operator may limit a key to."""

from __future__ import annotations

import pytest

from libs.client.errors import OperatorError
from services.gateway.key_limits import MOST_NETWORKS, networks_of


def test_networks_have_one_form() -> None:
    assert networks_of(["203.0.113.7", "203.0.113.7/32", "2001:DB8::/32"]) == {
        "203.0.113.7/32",
        "2001:db8::/32",
    }


@pytest.mark.parametrize(
    "text", ["", "everywhere", "203.0.113.7/24", "203.0.113.0/33", "::ffff:203.0.113.7/128"]
)
def test_what_is_no_network_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(OperatorError, match="Name "):
        networks_of([text])


def test_a_key_is_limited_to_so_many_networks() -> None:
    with pytest.raises(OperatorError, match="at most"):
        networks_of([f"203.0.113.{number}" for number in range(MOST_NETWORKS + 1)])
