"""Settings out of the environment: one rule for every service.

A field `admin_port` of the service with prefix `GATEWAY` is read from `BANKSIDE_GATEWAY_ADMIN_PORT`, else from
`BANKSIDE_ADMIN_PORT`. So each setting can be given for all services or for one, except logins and key rings. A secret
can be given as a file or by a program, too (`libs.secret_sources`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo

from libs.persistence.addressing import parse_database_url
from libs.runtime.addresses import parse_networks
from libs.runtime.production import password_of, plaintext_database, weak_secrets
from libs.runtime.start_checks import clock_refusals
from libs.secret_sources import BadSecret, is_set, read_secret, require_private, variables
from libs.tls import client_context

EXIT_MISCONFIGURED = 78


OWN = frozenset({"amqp_url", "database_url"})
"""Logins: each service has its own, so no variable sets one for all. The same holds for key rings."""
DATABASE_OF_ALL = "BANKSIDE_DATABASE_URL"
"""The variable that earlier releases took for the database of every service without one of its own."""
KEY_RING = "_keys"
"""How the name of a field with a key ring ends."""


def settings_of(prefix: str) -> ConfigDict:
    """The `model_config` of a service whose own variables begin with `BANKSIDE_<prefix>_`."""

    def names(field: str) -> AliasChoices:
        own = f"BANKSIDE_{prefix}_{field.upper()}"
        if field in OWN or field.endswith(KEY_RING):
            return AliasChoices(own)
        return AliasChoices(own, f"BANKSIDE_{field.upper()}")

    return ConfigDict(
        alias_generator=AliasGenerator(validation_alias=names),
        validate_by_name=True,
        validate_default=True,
        extra="ignore",
        frozen=True,
    )


def _has_certificates(path: str | None) -> str | None:
    """An empty setting is not set. Raises BadCertificates, a ValueError as Pydantic wants it."""
    if path:
        client_context(path)
    return path or None


CaFile = Annotated[str | None, AfterValidator(_has_certificates)]
"""A file of CA certificates in PEM."""


def _are_networks(text: str) -> str:
    """Raises ValueError."""
    parse_networks(text)
    return text


Networks = Annotated[str, AfterValidator(_are_networks)]
"""Networks separated by commas, as `libs.runtime.addresses` reads them."""


def _is_database_url(url: SecretStr) -> SecretStr:
    """Raises BadDatabaseUrl, a ValueError as Pydantic wants it."""
    parse_database_url(url.get_secret_value())
    return url


class ProcessSettings(BaseModel):
    """What every process has. Subclasses set `service` and `model_config = settings_of(...)`."""

    service: ClassVar[str]
    simulates_providers: ClassVar[bool] = False
    """It knows the tokens of its callers, as a provider does."""
    identified_by: ClassVar[str]
    """A setting that every environment of this service has, and no other: `bankside doctor` knows the service by it."""

    profile: Literal["development", "production"] = "development"
    """`production` refuses what is only fit for development, with a sentence for each."""
    admin_host: str = "127.0.0.1"
    """The address of the admin port, which has no login: one that only probes and Prometheus reach."""
    admin_port: int = Field(default=0, ge=0, le=65535)
    """The port of `/health`, `/ready` and `/metrics`; 0: a free one."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """The least level of lines that are written."""
    shutdown_seconds: float = Field(default=15, gt=0, le=300)
    """From SIGTERM until the process has ended, at most."""
    crash_at: str = ""
    """For tests: the point at which the process kills itself. Refused in production."""
    plaintext_hosts: str = ""
    """Hosts, separated by commas, where production may do without TLS: those of AMQP, PostgreSQL, the collector of
    traces and, of the gateway and the console, the gateway's listener for operators; never those of providers.
    """

    @property
    def collector(self) -> str | None:
        """Where the process exports its traces to; None: it records none."""
        return None

    @property
    def is_production(self) -> bool:
        return self.profile == "production"

    @classmethod
    def load(cls) -> Self:
        """Read the environment. Problems end the process, with a sentence for each that says what to set."""
        settings, problems = cls.examine()
        if settings is None or problems:
            for problem in problems:
                print(f"{cls.service}: {problem}", file=sys.stderr)
            raise SystemExit(EXIT_MISCONFIGURED)
        return settings

    @classmethod
    def complete(cls) -> type[Self]:
        """This class, or a subclass with further settings that the environment makes necessary."""
        return cls

    @classmethod
    def examine(cls, *, for_production: bool = False) -> tuple[Self | None, list[str]]:
        """The settings of the environment, None when they cannot be read; and all that is wrong, a sentence each.

        Args:
            for_production: say what production refuses, also under another profile.
        """
        complete = cls.complete()
        if complete is not cls:
            return complete.examine(for_production=for_production)
        secrets, problems = cls._secrets()
        if problems:
            return None, problems
        try:
            settings = cls.model_validate(
                cls._plain_variables() | secrets, by_alias=True, by_name=False
            )
        except ValidationError as error:
            return None, [_wrong_settings(error)]
        if for_production or settings.is_production:
            problems = [*_readable_by_others(secrets), *settings.refusals()]
        return settings, problems

    def problems(self) -> Iterator[str]:
        """What no profile can work with, a sentence each; the service says it when it starts. Subclasses add theirs."""
        yield from ()

    def refusals(self) -> Iterator[str]:
        """What production refuses of these settings, a sentence each. Subclasses add theirs."""
        if self.crash_at:
            yield f"unset {self.variable('crash_at')}: it is refused in production."
        yield from weak_secrets(self.random_secrets())

    async def refusals_at_start(self) -> list[str]:
        """What production refuses after asking servers: see `libs.runtime.start_checks`. Subclasses add theirs."""
        return []

    def hosts_in_plaintext(self) -> frozenset[str]:
        return frozenset(host.strip() for host in self.plaintext_hosts.split(",") if host.strip())

    @classmethod
    def variable(cls, field: str) -> str:
        """The variable that sets this field: the one that is given, else that of the service alone."""
        names = names_of(cls.model_fields[field])
        return next((name for name in names if is_set(name)), names[0])

    @classmethod
    def variables(cls) -> set[str]:
        """All variables that set something of this service."""
        return {
            variable
            for field in cls.model_fields.values()
            for name in names_of(field)
            for variable in (variables(name) if _is_secret(field) else (name,))
        }

    def random_secrets(self) -> dict[str, str]:
        """What is to be random in the secrets: passwords of URLs, the sealing key of each ring, and whole secrets."""
        found: dict[str, str] = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if not _is_secret(field) or value is None:
                continue
            secret = value.get_secret_value()
            variable = self.variable(name)
            if name.endswith("_url"):
                secret, variable = password_of(secret), f"the password in {variable}"
            elif name.endswith(KEY_RING):
                # The other keys are there until what they sealed is sealed anew.
                secret = secret.partition(",")[0].strip().rpartition(":")[2]
            if secret:
                found[variable] = secret
        return found

    @classmethod
    def _plain_variables(cls) -> dict[str, str]:
        """The environment without the variables of secrets, which `_secrets` reads."""
        secret = {
            name
            for field in filter(_is_secret, cls.model_fields.values())
            for name in names_of(field)
        }
        return {name: value for name, value in os.environ.items() if name not in secret}

    @classmethod
    def _secrets(cls) -> tuple[dict[str, Any], list[str]]:
        """The secrets that are given, by the variable that counts; and what is wrong with others."""
        found: dict[str, Any] = {}
        problems: list[str] = []
        for field in filter(_is_secret, cls.model_fields.values()):
            name = next((name for name in names_of(field) if is_set(name)), None)
            if name is not None:
                try:
                    found[name] = read_secret(name)
                except BadSecret as error:
                    problems.append(str(error))
        return found, problems


class ServiceSettings(ProcessSettings):
    """What every service with a database has."""

    identified_by: ClassVar[str] = "database_url"

    database_url: Annotated[SecretStr, AfterValidator(_is_database_url)]
    """The database, with the service's own login, which defines nothing: `postgresql://…`."""
    database_ca_file: CaFile = None
    """The CA of the database server's certificate; None: those that the system trusts."""

    def refusals(self) -> Iterator[str]:
        url = self.database_url.get_secret_value()
        yield from super().refusals()
        yield from plaintext_database(self.variable("database_url"), url, self.hosts_in_plaintext())

    async def refusals_at_start(self) -> list[str]:
        return [
            *await super().refusals_at_start(),
            *await clock_refusals(self.database_url.get_secret_value(), self.database_ca_file),
        ]


def _is_secret(field: FieldInfo) -> bool:
    return SecretStr in (field.annotation, *get_args(field.annotation))


def names_of(field: FieldInfo) -> list[str]:
    """The variables that set this field, the first that is given counts."""
    assert isinstance(field.validation_alias, AliasChoices)
    return [str(name) for name in field.validation_alias.choices]


def _wrong_settings(error: ValidationError) -> str:
    items = error.errors(include_input=False)
    missing = [str(item["loc"][0]) for item in items if item["type"] == "missing"]
    wrong = [f"{item['loc'][0]} ({item['msg']})" for item in items if item["type"] != "missing"]
    told = f"set {', '.join([*missing, *wrong])}."
    if is_set(DATABASE_OF_ALL) and any(name.endswith("_DATABASE_URL") for name in missing):
        return (
            f"{told} {DATABASE_OF_ALL} is not read any more: each service has a login of its own."
        )
    return told


def _readable_by_others(secrets: Iterable[str]) -> Iterator[str]:
    for name in secrets:
        try:
            require_private(name)
        except BadSecret as error:
            yield str(error)
