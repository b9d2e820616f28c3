"""What an operator sets for the sandbox: a URL and a token for each role that a service calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pydantic import SecretStr, create_model

from libs.http_urls import HttpUrl
from libs.providers.companies import CompanySettings, Login, Role, Simulator

PROBE = "/operations/bankside-doctor"
SIMULATOR = Simulator("the sandbox", server="bankside-provider-sandbox")


class SandboxSettings(CompanySettings):
    """Its fields are made by `settings_for`."""

    def login(self, role: Role) -> Login:
        url_field, token_field = f"{role}_url", f"{role}_token"
        token: SecretStr = getattr(self, token_field)
        return Login(
            url_field,
            getattr(self, url_field),
            token_field,
            token.get_secret_value(),
            PROBE,
            SIMULATOR,
        )

    def logins(self) -> Iterator[Login]:
        for role in Role:
            if f"{role}_url" in type(self).model_fields:
                yield self.login(role)


def settings_for(roles: Collection[Role]) -> type[SandboxSettings]:
    fields: dict[str, Any] = {}
    for role in roles:
        fields |= {f"{role}_url": (HttpUrl, ...), f"{role}_token": (SecretStr, ...)}
    return create_model("SandboxSettings", __base__=SandboxSettings, **fields)
