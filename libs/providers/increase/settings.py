"""What an operator sets for Increase: one URL for all services, and a key for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.util import find_spec
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from libs.http_urls import HttpUrl
from libs.providers.companies import CompanySettings, Login, Role, Simulator

PROBE = "/accounts?limit=1"
SIMULATOR = Simulator("Increase's bank for tests", host="sandbox.increase.com")


def _if_set(value: str | None) -> str | None:
    return value or None


class IncreaseSettings(CompanySettings):
    increase_url: HttpUrl
    increase_key: SecretStr
    increase_program_id: Annotated[str | None, AfterValidator(_if_set)] = None
    """Of the accounts that are opened; needed where there is more than one program."""

    def logins(self) -> Iterator[Login]:
        secret = self.increase_key.get_secret_value()
        yield Login("increase_url", self.increase_url, "increase_key", secret, PROBE, SIMULATOR)

    def unusable(self) -> Iterator[str]:
        if find_spec("increase") is None:
            yield "install bankside[increase]: a provider role is at Increase, whose package is missing."


def settings_for(_: Collection[Role]) -> type[IncreaseSettings]:
    return IncreaseSettings
