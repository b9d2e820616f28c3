"""The services that run, and what each is told: the one place to add a service or a setting.

Names are as everywhere: `services.<name>` is the module, `<name>` the database role and schema, and
`BANKSIDE_<prefix>_…` the settings of that service alone.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any, Self

from deploy.local.ports import LOOPBACK, local_url, reached_at
from libs.messaging.message_sealer import PAIRS
from libs.messaging.senders import PARTICIPANTS
from libs.secret_sources import variables


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    prefix: str
    public_port: int | None = None
    """The default of `BANKSIDE_<prefix>_PORT`; None: it serves nothing but its admin port."""
    stop_seconds: float = 20.0
    """Longer than it lets itself take to stop (its `shutdown_seconds`)."""

    @property
    def port_setting(self) -> str:
        return f"BANKSIDE_{self.prefix}_PORT"


SERVICES = (
    Service("provider_sandbox", "SANDBOX", public_port=8090),
    Service("onboarding", "ONBOARDING"),
    Service("ledger_read", "LEDGER_READ"),
    Service("payments", "PAYMENTS"),
    Service("webhook_dispatcher", "WEBHOOK_DISPATCHER", stop_seconds=40.0),
    Service("reconciliation", "RECONCILIATION"),
    Service("gateway", "GATEWAY", public_port=8080),
    Service("console", "CONSOLE", public_port=8082),
)
"""In the order in which they start; they stop in the reverse order."""

OPERATOR_PORT_SETTING = "BANKSIDE_GATEWAY_OPERATOR_PORT"
OPERATOR_PORT = 8081
"""The default of the gateway's listener for operators."""

DATABASE = "bankside"
ROLES = {service.name: service.prefix for service in SERVICES if service.name != "console"}
"""The role and schema of every service but the console, which has no database, and the prefix of its settings."""
OWNERS = {f"{role}_owner": f"{prefix}_OWNER" for role, prefix in ROLES.items()}
"""The owners of the schemas, by which migrations run. No service has their settings."""
LOGINS = {**ROLES, **OWNERS}
"""Every role that deploy/postgres/schemas.sql makes."""
_LOOPBACK_ONLY: Mapping[str, str] = MappingProxyType({})
OPERATORS_ONLY = variables("BANKSIDE_AMQP_URL")
"""Settings that no service gets: the URL of the broker's administrator."""


PROVIDER_APIS = {
    "onboarding": ("identity", "core", "financial"),
    "payments": ("core",),
    "ledger_read": ("financial",),
    "reconciliation": ("identity", "core", "financial"),
}
"""The providers that a service calls, with a token of its own for each."""
INCREASE_CALLERS = tuple(PROVIDER_APIS)
"""The services that call Increase where it is the provider, with a key of their own each."""
INCREASE_FAKE_PREFIX = "BANKSIDE_INCREASE_FAKE_"
"""Settings of the fake of Increase, which no service gets."""
STORING = ("gateway", "onboarding", "webhook_dispatcher")
"""The services with sealed values in their databases."""
FINDING = ("gateway", "onboarding")
"""The services that find values again by keyed digests."""
SHARING = tuple(sorted(PAIRS))
"""The services between which sealed values travel, with a key ring of their own for each two."""
KEEPING = ("gateway-onboarding", "gateway-webhook_dispatcher")
"""Those of them whose commands and replies stay sealed in an inbox. Queries are gone after half a minute."""


@dataclass(frozen=True)
class Secrets:
    """Made once for a stack and kept as long as its data; see `from_json` for what a later release adds."""

    superuser_password: str = field(repr=False)
    role_passwords: Mapping[str, str] = field(repr=False)
    rabbitmq_password: str = field(repr=False)
    """Of the administrator."""
    amqp_passwords: Mapping[str, str] = field(repr=False)
    """Of the services' users at the broker."""
    erlang_cookie: str = field(repr=False)
    storage_keys: Mapping[str, str] = field(repr=False)
    lookup_keys: Mapping[str, str] = field(repr=False)
    shared_keys: Mapping[str, str] = field(repr=False)
    """By the names of the two services, with a hyphen between them."""
    provider_tokens: Mapping[str, Mapping[str, str]] = field(repr=False)
    """By service, then by API."""
    link_key: str = field(repr=False)
    increase_keys: Mapping[str, str] = field(repr=False)
    """By service: what the fake of Increase knows them by."""
    increase_fake_key: str = field(repr=False)
    """Of the demo and of operators, at the fake of Increase."""
    console_key: str = field(repr=False)
    """The console's subscription key at the gateway."""
    console_secret: str = field(repr=False)

    @classmethod
    def generate(cls) -> Self:
        return cls(
            superuser_password=secrets.token_hex(16),
            role_passwords={role: secrets.token_hex(16) for role in LOGINS},
            rabbitmq_password=secrets.token_hex(16),
            amqp_passwords={user: secrets.token_hex(16) for user in PARTICIPANTS},
            erlang_cookie=secrets.token_hex(16),
            storage_keys={service: _ring() for service in STORING},
            lookup_keys={service: _ring() for service in FINDING},
            shared_keys={"-".join(pair): _ring() for pair in SHARING},
            provider_tokens={
                service: {api: secrets.token_hex(24) for api in apis}
                for service, apis in PROVIDER_APIS.items()
            },
            link_key=secrets.token_hex(24),
            increase_keys={service: secrets.token_hex(24) for service in INCREASE_CALLERS},
            increase_fake_key=secrets.token_hex(24),
            console_key=f"sub_{secrets.token_hex(16)}",
            console_secret=secrets.token_hex(24),
        )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """What `to_json` of this or an earlier release made. What is there stays: the data needs it; what is missing is
        made, and what no release needs any more is dropped.
        """
        fresh = cls.generate().to_json()
        if "sealing_keys" in stored:
            _put_behind(fresh, stored["sealing_keys"], stored["lookup_key"])
        return cls(**_completed(fresh, stored))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def schema_passwords(self) -> dict[str, str]:
        """The environment of deploy/postgres/schemas.sql."""
        return {
            f"BANKSIDE_{LOGINS[role]}_DATABASE_PASSWORD": password
            for role, password in self.role_passwords.items()
        }


def _completed(fresh: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _completed(value, stored.get(name, {}))
        if isinstance(value, Mapping)
        else stored.get(name, value)
        for name, value in fresh.items()
    }


def _put_behind(fresh: Mapping[str, Any], sealing_keys: str, lookup_key: str) -> None:
    """Behind the new keys, the one ring of an earlier release, where it sealed what is stored, and its lookup key."""
    for rings, names, earlier in (
        (fresh["storage_keys"], STORING, sealing_keys),
        (fresh["shared_keys"], KEEPING, sealing_keys),
        (fresh["lookup_keys"], FINDING, lookup_key),
    ):
        for name in names:
            rings[name] = f"{rings[name]},{earlier}"


def _ring() -> str:
    """Of one key, whose id is not that of any other."""
    return f"k{secrets.token_hex(4)}:{_key()}"


def _key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def stack_settings(
    *,
    secrets: Secrets,
    database_urls: Mapping[str, str],
    amqp_url: str,
    amqp_urls: Mapping[str, str],
    public_ports: Mapping[str, int],
    operator_port: int,
    admin_ports: Mapping[str, int],
    hosts: Mapping[str, str] = _LOOPBACK_ONLY,
) -> dict[str, str]:
    """All `BANKSIDE_…` variables of a stack on this machine. The mappings go by service (or role) name.

    Args:
        amqp_url: the administrator's, for operators.
        hosts: what services listen on, by the names of the settings; without one, on the loopback interface.
    """
    operator_host = hosts.get("BANKSIDE_GATEWAY_OPERATOR_HOST", LOOPBACK)
    sandbox_host = hosts.get("BANKSIDE_SANDBOX_HOST", LOOPBACK)
    sandbox = local_url(sandbox_host, public_ports["provider_sandbox"])
    settings = {
        "BANKSIDE_PROFILE": "development",
        "BANKSIDE_AMQP_URL": amqp_url,
        "BANKSIDE_IDENTITY_URL": f"{sandbox}/identity",
        "BANKSIDE_CORE_URL": f"{sandbox}/core",
        "BANKSIDE_FINANCIAL_URL": f"{sandbox}/financial",
        "BANKSIDE_SANDBOX_PUBLIC_URL": sandbox,
        "BANKSIDE_SANDBOX_LINK_KEY": secrets.link_key,
        "BANKSIDE_CALLBACK_ALLOW": f"{LOOPBACK}:*,localhost:*",
        "BANKSIDE_ADMIN_HOST": LOOPBACK,
        "BANKSIDE_GATEWAY_OPERATOR_HOST": LOOPBACK,
        OPERATOR_PORT_SETTING: str(operator_port),
        "BANKSIDE_CONSOLE_OPERATOR_URL": local_url(operator_host, operator_port),
        "BANKSIDE_CONSOLE_OPERATOR_KEY": secrets.console_key,
        "BANKSIDE_CONSOLE_OPERATOR_SECRET": secrets.console_secret,
        "BANKSIDE_GATEWAY_CONSOLE_KEY": secrets.console_key,
        "BANKSIDE_GATEWAY_CONSOLE_SECRET": secrets.console_secret,
    }
    for storing, ring in secrets.storage_keys.items():
        settings[f"BANKSIDE_{ROLES[storing]}_STORAGE_KEYS"] = ring
    for finding, ring in secrets.lookup_keys.items():
        settings[f"BANKSIDE_{ROLES[finding]}_LOOKUP_KEYS"] = ring
    for one, other in SHARING:
        ring = secrets.shared_keys[f"{one}-{other}"]
        settings[f"BANKSIDE_{ROLES[one]}_{ROLES[other]}_KEYS"] = ring
        settings[f"BANKSIDE_{ROLES[other]}_{ROLES[one]}_KEYS"] = ring
    for role, prefix in LOGINS.items():
        settings[f"BANKSIDE_{prefix}_DATABASE_URL"] = database_urls[role]
    for service in SERVICES:
        settings[f"BANKSIDE_{service.prefix}_ADMIN_PORT"] = str(admin_ports[service.name])
        if service.name in amqp_urls:
            settings[f"BANKSIDE_{service.prefix}_AMQP_URL"] = amqp_urls[service.name]
        if service.public_port is not None:
            settings[f"BANKSIDE_{service.prefix}_HOST"] = LOOPBACK
            settings[service.port_setting] = str(public_ports[service.name])
    for caller, tokens in secrets.provider_tokens.items():
        for api, token in tokens.items():
            name = f"{ROLES[caller]}_{api.upper()}_TOKEN"
            settings[f"BANKSIDE_{name}"] = token
            settings[f"BANKSIDE_SANDBOX_{name}"] = token
    return settings


def admin_address(service: Service, settings: Mapping[str, str]) -> tuple[str, int]:
    """Where this machine reaches the service's admin port: the address and the port."""
    shared = settings.get("BANKSIDE_ADMIN_HOST", LOOPBACK)
    host = settings.get(f"BANKSIDE_{service.prefix}_ADMIN_HOST", shared)
    return reached_at(host), int(settings[f"BANKSIDE_{service.prefix}_ADMIN_PORT"])


def prometheus_targets(
    settings: Mapping[str, str], services: Iterable[Service]
) -> list[dict[str, Any]]:
    """The admin ports of a stack, as Prometheus reads them from a file. Each process of the gateway has one."""
    host = settings["BANKSIDE_ADMIN_HOST"]
    found: list[dict[str, Any]] = []
    for service in services:
        port = settings[f"BANKSIDE_{service.prefix}_ADMIN_PORT"]
        processes = settings.get(f"BANKSIDE_{service.prefix}_PROCESSES", "1")
        targets = [f"{host}:{port}"]
        if port.isdigit() and processes.isdigit():  # the service refuses others
            targets = [f"{host}:{int(port) + number}" for number in range(int(processes))]
        found.append({"targets": targets, "labels": {"service": service.name}})
    return found


INTERPRETER = {"PYTHONNODEBUGRANGES": "1"}
"""As in the images: a traceback names lines and no columns, and each service is half a MiB smaller."""


def settings_of(service: Service, settings: Mapping[str, str]) -> dict[str, str]:
    """What this service may know of `settings`: what is meant for all and for itself, nothing of the others."""
    others = {other.prefix for other in SERVICES if other is not service} | {*OWNERS.values()}
    hidden = (*(f"BANKSIDE_{prefix}_" for prefix in others), INCREASE_FAKE_PREFIX)
    own = {
        name: value
        for name, value in settings.items()
        if not name.startswith(hidden) and name not in OPERATORS_ONLY
    }
    return INTERPRETER | own


def tokens_at_sandbox(chosen: Mapping[str, str]) -> dict[str, str]:
    """The sandbox's settings for tokens that an operator chose for services, whose providers it simulates."""
    found: dict[str, str] = {}
    for caller, apis in PROVIDER_APIS.items():
        for api in apis:
            role = f"{ROLES[caller]}_{api.upper()}"
            if chosen.keys() & {f"BANKSIDE_{role}_URL", f"BANKSIDE_{api.upper()}_URL"}:
                continue  # of a provider elsewhere
            for name in variables(f"{role}_TOKEN"):
                if f"BANKSIDE_{name}" in chosen:
                    found[f"BANKSIDE_SANDBOX_{name}"] = chosen[f"BANKSIDE_{name}"]
    return found


def migration_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """What migrations may know of `settings`."""
    names = {f"BANKSIDE_{prefix}_DATABASE_URL" for prefix in OWNERS.values()}
    of_ca = {f"BANKSIDE_{prefix}_DATABASE_CA_FILE" for prefix in ROLES.values()}
    names = {*chain.from_iterable(map(variables, names)), *of_ca, "BANKSIDE_DATABASE_CA_FILE"}
    return {name: value for name, value in settings.items() if name in names}
