"""Settings out of the environment: one rule for every service.

A field `admin_port` of the service with prefix `GATEWAY` is read from `BANKSIDE_GATEWAY_ADMIN_PORT`, else from
`BANKSIDE_ADMIN_PORT`. So each setting can be given for all services or for one, except those in `OWN`. A secret can be
given as a file, too: `BANKSIDE_GATEWAY_LOOKUP_KEY_FILE`, else `BANKSIDE_LOOKUP_KEY_FILE`, names it.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, AliasChoices, AliasGenerator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from libs.persistence.addressing import parse_database_url
from libs.secret_files import BadSecret, is_set, read_secret, require_private
from libs.tls import client_context

EXIT_MISCONFIGURED = 78


OWN = frozenset({"amqp_url"})
"""Logins: each service has its own, and is never given one for all."""


def settings_of(prefix: str) -> SettingsConfigDict:
    """The `model_config` of a service whose own variables begin with `BANKSIDE_<prefix>_`."""

    def names(field: str) -> AliasChoices:
        own = f"BANKSIDE_{prefix}_{field.upper()}"
        return AliasChoices(own) if field in OWN else AliasChoices(own, f"BANKSIDE_{field.upper()}")

    return SettingsConfigDict(
        alias_generator=AliasGenerator(validation_alias=names),
        validate_by_name=True,
        case_sensitive=True,
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


def _is_database_url(url: SecretStr) -> SecretStr:
    """Raises BadDatabaseUrl, a ValueError as Pydantic wants it."""
    parse_database_url(url.get_secret_value())
    return url


class ServiceSettings(BaseSettings):
    """What every service has. Subclasses set `service` and `model_config = settings_of(...)`."""

    service: ClassVar[str]

    profile: Literal["development", "production"] = "development"
    database_url: Annotated[SecretStr, AfterValidator(_is_database_url)]
    database_ca_file: CaFile = None
    """The CA of the database server's certificate; None: those that the system trusts."""
    admin_host: str = "127.0.0.1"
    admin_port: int = Field(default=0, ge=0, le=65535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    shutdown_seconds: float = Field(default=15, gt=0, le=300)
    crash_at: str = ""

    @property
    def is_production(self) -> bool:
        return self.profile == "production"

    @classmethod
    def load(cls) -> Self:
        """Read the environment. A mistake ends the process with a sentence that says what to set."""
        try:
            secrets = cls._secrets()
            settings = cls(**secrets)
            if settings.is_production:
                for name in secrets:
                    require_private(name)
        except BadSecret as error:
            print(f"{cls.service}: {error}", file=sys.stderr)
            raise SystemExit(EXIT_MISCONFIGURED) from None
        except ValidationError as error:
            items = error.errors(include_input=False)
        else:
            return settings
        missing = [str(item["loc"][0]) for item in items if item["type"] == "missing"]
        wrong = [f"{item['loc'][0]} ({item['msg']})" for item in items if item["type"] != "missing"]
        print(f"{cls.service}: set {', '.join([*missing, *wrong])}.", file=sys.stderr)
        raise SystemExit(EXIT_MISCONFIGURED)

    @classmethod
    def _secrets(cls) -> dict[str, Any]:
        """The secrets that are given, by the variable that counts. Raises BadSecret."""
        found: dict[str, Any] = {}
        for field in cls.model_fields.values():
            if SecretStr not in (field.annotation, *get_args(field.annotation)):
                continue
            assert isinstance(field.validation_alias, AliasChoices)
            names = [str(name) for name in field.validation_alias.choices]
            name = next((name for name in names if is_set(name)), None)
            if name is not None:
                found[name] = read_secret(name)
        return found
