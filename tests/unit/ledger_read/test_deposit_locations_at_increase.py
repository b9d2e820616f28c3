"""Increase's IntraFi balance as a load of deposit locations."""

from __future__ import annotations

import pytest

from libs.contracts.deposit_locations import ListDepositLocations
from libs.contracts.errors import ProviderError
from libs.providers.increase.client import IncreaseClient
from services.ledger_read.adapters.increase.ledger import IncreaseLedger
from services.ledger_read.adapters.increase.reading import Reader
from tests.unit.ledger_read.fakes import NoLoads
from tests.unit.providers.conftest import Provider, provider, session, soon
from tests.unit.providers.increase.conftest import increase, shows

__all__ = ["increase", "provider", "session"]


@pytest.mark.parametrize("certificate", ["", "FDIC 314", "3.14", "-314", "1_000", "9" * 19])
async def test_a_certificate_that_is_no_number_is_the_providers_error(
    provider: Provider, increase: IncreaseClient, certificate: str
) -> None:
    part = {"bank": "Example Bank", "balance": 1000, "fdic_certificate_number": certificate}
    balance = {"balances": [part], "effective_date": "2026-03-02", "total_balance": 1000}
    provider.answers = [shows(balance | {"currency": "USD", "type": "intrafi_balance"})]
    ledger = IncreaseLedger(Reader(increase), NoLoads())

    with pytest.raises(ProviderError):
        await ledger.deposit_locations(ListDepositLocations(account_id="account_1"), soon())
