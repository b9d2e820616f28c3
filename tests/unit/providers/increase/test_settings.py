"""Settings of Increase."""

from __future__ import annotations

import subprocess
import sys

import pytest

from libs.providers.companies import Company, Role, settings_for
from libs.providers.increase import settings as module
from libs.providers.increase.settings import IncreaseSettings

NOTHING_IMPORTED = """
import sys
from libs.providers.companies import Company, Role, settings_for
settings_for(Company.INCREASE, [Role.CORE])
assert not {"increase", "httpx"} & set(sys.modules), sorted(sys.modules)
"""


def chosen() -> IncreaseSettings:
    made = settings_for(Company.INCREASE, [Role.CORE])(
        increase_url="https://api.increase.com", increase_key="k"
    )
    assert isinstance(made, IncreaseSettings)
    return made


def test_without_its_sdk_increase_cannot_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(chosen().unusable()) == []
    monkeypatch.setattr(module, "find_spec", lambda _: None)

    [why] = chosen().unusable()

    assert "bankside[increase]" in why


def test_its_key_is_shown_nowhere() -> None:
    assert "increase_key=SecretStr('**********')" in repr(chosen())


def test_the_settings_are_read_without_the_sdk() -> None:
    subprocess.run([sys.executable, "-c", NOTHING_IMPORTED], check=True, timeout=60)
