"""Which bank a stack of `make up` has, and who is told of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from deploy.local.banks import (
    INCREASE_FAKE,
    PORT_SETTING,
    PROVIDER_SETTINGS,
    SANDBOX,
    bank_addresses,
    bank_settings,
    chosen_bank,
    fake_settings,
    has_fake,
    services_beside,
)
from deploy.local.services import INCREASE_CALLERS, SERVICES, settings_of
from deploy.local.state import LocalState, Remembered
from libs.client.errors import OperatorError

NAMES = [service.name for service in SERVICES]


def test_a_stack_keeps_the_bank_of_its_data() -> None:
    at_increase = Remembered.new(INCREASE_FAKE)

    assert chosen_bank(None, None) == SANDBOX
    assert chosen_bank(INCREASE_FAKE, None) == INCREASE_FAKE
    assert chosen_bank(None, at_increase) == INCREASE_FAKE
    with pytest.raises(OperatorError, match=r"that of BANK=increase-fake.*`make clean`"):
        chosen_bank(SANDBOX, at_increase)
    with pytest.raises(OperatorError, match="none of sandbox, increase-fake"):
        chosen_bank("increase", None)


def test_a_stack_of_an_earlier_release_is_at_the_sandbox_and_gets_keys(tmp_path: Path) -> None:
    stored = json.loads(json.dumps(asdict(Remembered.new())))
    del stored["bank"], stored["secrets"]["increase_keys"], stored["secrets"]["increase_fake_key"]
    (tmp_path / "stack.json").write_text(json.dumps(stored))

    upgraded = LocalState(tmp_path).remembered()

    assert upgraded is not None
    assert upgraded.bank == SANDBOX
    assert upgraded.secrets.increase_keys.keys() == {*INCREASE_CALLERS}
    assert len({*upgraded.secrets.increase_keys.values(), upgraded.secrets.increase_fake_key}) == 5


def test_the_sandbox_runs_where_it_has_a_role() -> None:
    at_increase = bank_settings(INCREASE_FAKE, Remembered.new().secrets, 8091)
    mixed = at_increase | {PROVIDER_SETTINGS[0]: SANDBOX, "BANKSIDE_SANDBOX_PORT": "8090"}

    assert [service.name for service in services_beside({})] == NAMES
    assert [service.name for service in services_beside(mixed)] == NAMES
    assert "provider_sandbox" not in [s.name for s in services_beside(at_increase)]
    assert bank_addresses(at_increase) == {"increase_fake_url": "http://127.0.0.1:8091"}
    assert bank_addresses(mixed).keys() == {"sandbox_url", "increase_fake_url"}


def test_each_service_knows_its_own_key_and_the_fake_knows_all() -> None:
    settings = bank_settings(INCREASE_FAKE, Remembered.new().secrets, 8091)

    assert has_fake(settings)
    assert not bank_settings(SANDBOX, Remembered.new().secrets, 8091)
    for service in SERVICES:
        told = settings_of(service, settings)
        keys = {name for name in told if name.endswith("_KEY")}
        own = {f"BANKSIDE_{service.prefix}_INCREASE_KEY"}
        assert keys == (own if service.name in INCREASE_CALLERS else set())
        assert PORT_SETTING not in told
    known = [name for name in fake_settings(settings) if name.endswith("_KEY")]
    assert len(known) == len(INCREASE_CALLERS) + 1
