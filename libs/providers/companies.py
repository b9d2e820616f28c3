"""The companies that can stand behind the provider roles, and where their code is.

    libs/providers/<company>/settings.py                    what an operator sets for it: `settings_for(roles)`
    services/<service>/adapters/<company>/composition.py    `open_adapters`, called by `services/<service>/providers.py`

Both are imported when the company is chosen for a role, not before. No other module of `libs` and `services` names a
company, but its own packages.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from types import ModuleType
from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel


class Role(StrEnum):
    IDENTITY = "identity"
    CORE = "core"
    FINANCIAL = "financial"


class Company(StrEnum):
    SANDBOX = "sandbox"
    INCREASE = "increase"


DEFAULT = Company.SANDBOX


@dataclass(frozen=True, slots=True)
class Simulator:
    """What simulates a company and is refused in production.

    Args:
        server: the `Server` header of its answers.
        host: where it is, when that alone tells it.
    """

    name: str
    server: str | None = None
    host: str | None = None

    def is_at(self, url: str) -> bool:
        return self.host is not None and urlsplit(url).hostname == self.host

    def has_answered(self, server: str | None) -> bool:
        """Whether the simulator gave an answer.

        Args:
            server: the `Server` header of the answer.
        """
        return self.server is not None and server == self.server


@dataclass(frozen=True, slots=True)
class Login:
    """What a service presents at one API, as a bearer.

    Args:
        url_field, secret_field: the settings that it came from.
        probe: a path whose GET changes nothing, and is answered 401 when the secret is not known.
        simulator: what may answer there in place of the company.
    """

    url_field: str
    url: str
    secret_field: str
    secret: str
    probe: str
    simulator: Simulator | None = None


class CompanySettings(BaseModel):
    """What an operator sets for one company, for one service. A field without a default has to be set.

    The settings of a service become an instance of the company's class too when it is chosen: a field `abc_key` is read
    from `BANKSIDE_<SERVICE>_ABC_KEY`, else from `BANKSIDE_ABC_KEY`.
    """

    @classmethod
    def of(cls, settings: BaseModel) -> Self:
        """The company's part of a service's settings."""
        assert isinstance(settings, cls)
        return settings

    @abstractmethod
    def logins(self) -> Iterator[Login]:
        """One for each API that the service calls."""

    def unusable(self) -> Iterator[str]:
        """Why the company's adapters cannot work here, a sentence each: a package that is not installed, say."""
        yield from ()


def settings_for(company: Company, roles: Collection[Role]) -> type[CompanySettings]:
    """The settings of the company, for a service that calls it in these roles."""
    module = import_module(f"libs.providers.{company}.settings")
    found: type[CompanySettings] = module.settings_for(roles)
    return found


class NoAdapters(Exception):
    """The company cannot have a role in this service."""


def composition(adapters: str, company: Company) -> ModuleType:
    """The module `composition` of the company among the adapters of a service.

    Args:
        adapters: the package, as in `services.payments.adapters`.

    Raises:
        NoAdapters
    """
    name = f"{adapters}.{company}.composition"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and name.startswith(error.name):
            raise NoAdapters(company) from None
        raise
