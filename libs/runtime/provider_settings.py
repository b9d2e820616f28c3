"""Settings of services that call providers: which company has each role, and what the chosen companies need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from types import new_class
from typing import Self

from libs.providers.companies import DEFAULT, Company, CompanySettings, Login, Role, settings_for
from libs.runtime.process import Misconfigured
from libs.runtime.production import plaintext_provider
from libs.runtime.settings import CaFile, ServiceSettings, names_of
from libs.runtime.start_checks import provider_refusals, simulator_as_provider


class ProviderSettings(ServiceSettings):
    """A service that calls providers. For each role that it calls it has a field `<role>_provider: Company`."""

    provider_ca_file: CaFile = None
    """The CAs of the providers' certificates; None: those that the system trusts."""

    @classmethod
    def complete(cls) -> type[Self]:
        """This class, and a subclass of the settings of each company that the environment chooses."""
        if cls._company_settings():
            return cls
        return cls._with(tuple((company, tuple(roles)) for company, roles in cls.chosen().items()))

    @classmethod
    @cache
    def _with(cls, chosen: tuple[tuple[Company, tuple[Role, ...]], ...]) -> type[Self]:
        """Made once, since Pydantic takes some ms for it."""
        models = [settings_for(company, roles) for company, roles in chosen]
        return new_class(cls.__name__, (cls, *models))

    @classmethod
    def variables(cls) -> set[str]:
        """Those of every company: another one may be chosen than before."""
        if cls._company_settings():
            return super().variables()
        return cls._with(tuple((company, tuple(cls.roles())) for company in Company)).variables()

    @classmethod
    def roles(cls) -> list[Role]:
        return [role for role in Role if f"{role}_provider" in cls.model_fields]

    def companies(self) -> dict[Company, list[Role]]:
        """The chosen companies, each with its roles."""
        chosen: dict[Company, list[Role]] = {}
        for role in self.roles():
            chosen.setdefault(getattr(self, f"{role}_provider"), []).append(role)
        return chosen

    def require_usable(self) -> None:
        """Raises Misconfigured: a chosen company's adapters cannot work here."""
        if unusable := list(self._unusable()):
            raise Misconfigured(*unusable)

    def provider_logins(self) -> list[Login]:
        return [login for part in self._company_settings() for login in part.logins(part.of(self))]

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from self._unusable()

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        for variable, login in self._by_variable().items():
            yield from plaintext_provider(variable, login.url)
            if login.simulator is not None and login.simulator.is_at(login.url):
                yield simulator_as_provider(variable, login.simulator)

    async def refusals_at_start(self) -> list[str]:
        return [
            *await super().refusals_at_start(),
            *await provider_refusals(self._by_variable(), self.provider_ca_file),
        ]

    def _by_variable(self) -> dict[str, Login]:
        """By the variables that set their URLs."""
        return {self.variable(login.url_field): login for login in self.provider_logins()}

    def _unusable(self) -> Iterator[str]:
        for part in self._company_settings():
            yield from part.unusable(part.of(self))

    @classmethod
    def _company_settings(cls) -> list[type[CompanySettings]]:
        """The classes that `complete` added."""
        return [kind for kind in cls.__bases__ if issubclass(kind, CompanySettings)]

    @classmethod
    def chosen(cls) -> dict[Company, list[Role]]:
        """As `companies`, from the environment. A name that is no company's counts as the default here: the settings
        refuse it when they are read.
        """
        chosen: dict[Company, list[Role]] = {}
        for role in cls.roles():
            names = names_of(cls.model_fields[f"{role}_provider"])
            name = next((os.environ[name] for name in names if name in os.environ), DEFAULT)
            company = Company(name) if name in set(Company) else DEFAULT
            chosen.setdefault(company, []).append(role)
        return chosen
