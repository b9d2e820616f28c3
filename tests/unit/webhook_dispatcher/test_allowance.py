from __future__ import annotations

import pytest

from services.webhook_dispatcher.adapters.allowance import Allowance, BadAllowance
from tests.support.with_each import with_each


@pytest.mark.parametrize("setting", ["", " ", ",", " , "])
def test_nothing_is_allowed_by_default(setting: str) -> None:
    assert not Allowance.parse(setting)


@with_each(
    [
        ("localhost", "'localhost' is neither"),
        ("localhost:http", "'localhost:http' is neither"),
        ("localhost:0", "'localhost:0' has no port"),
        ("localhost:65536", "has no port"),
        ("http://localhost:1", "is not a network"),
        ("127.1:*", "'127.1:*' names no host"),
        ("2130706433:*", "names no host"),
        ("*:*", "names no host"),
        (":80", "names no host"),
        ("::1:80", "is neither"),
        ("[127.0.0.1]:80", "names no host"),
        ("[::1%eth0]:80", "names no host"),
        ("10.0.0.1/8", "10.0.0.1/8 has host bits set"),
        ("10.0.0.0/33", "is not a network"),
        ("fine:1,bad", "'bad' is neither"),
    ]
)
def test_a_mistake_in_the_setting_is_one_clear_sentence(case: tuple[str, str]) -> None:
    setting, said = case

    with pytest.raises(BadAllowance) as refused:
        Allowance.parse(setting)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
