"""What can be set of the gateway."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, SecretStr

from libs.messaging.topology import QUERY_TTL_SECONDS
from libs.runtime.listening_settings import ListeningSettings
from libs.runtime.production import is_on_this_machine
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import Networks, settings_of


class Settings(MessagingSettings, ListeningSettings):
    service = "gateway"
    model_config = settings_of("GATEWAY")

    storage_keys: SecretStr
    """Seal the secrets of keys in the database."""
    lookup_keys: SecretStr
    """The keys of the digests by which a repeated request is recognised."""
    onboarding_keys: SecretStr
    """The key ring that this service and onboarding share: it seals sensitive fields of their messages."""
    ledger_read_keys: SecretStr
    """The key ring that this service and ledger_read share: it seals sensitive fields of their messages."""
    webhook_dispatcher_keys: SecretStr
    """The key ring that this service and webhook_dispatcher share: it seals sensitive fields of their messages."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(default=8080, ge=1, le=65535)
    """The port to listen on."""
    operator_host: str = "127.0.0.1"
    """The address of the listener for operators."""
    operator_port: int = Field(default=8081, ge=1, le=65535)
    """The port of the listener for operators, which partners and customers cannot use."""
    session_seconds: float = Field(default=12 * 3600, gt=0, le=7 * 86_400)
    """A session of an operator at a console ends this long after its login."""
    session_idle_seconds: float = Field(default=30 * 60, gt=0, le=86_400)
    """A session of an operator at a console ends after this long without a request."""
    console_key: SecretStr | None = None
    """The subscription key of the console beside it, which is registered at the start in place of the one before; None:
    there is none, or it was made by `bankside operators create`.
    """
    console_secret: SecretStr | None = None
    """The secret of the key in `BANKSIDE_GATEWAY_CONSOLE_KEY`."""
    processes: int = Field(default=1, ge=1, le=64)
    """How many processes share the gateway's port."""
    deadline_seconds: float = Field(default=25, gt=4, le=QUERY_TTL_SECONDS)
    """Every caller is answered within this time."""
    body_seconds: float = Field(default=10, gt=0, le=60)
    """A body that has not arrived after this time is a 408."""
    stalled_seconds: float = Field(default=10, gt=0, le=60)
    """A connection is closed whose headers take longer, or whose answer is not read for this long."""
    connections: int = Field(default=8192, ge=16, le=1_000_000)
    """Connections of callers to one process, at most; beyond, one that waits for a request is closed for a new one."""
    connections_per_address: int = Field(default=512, ge=1)
    """Connections of one address to one process, at most, unless it is a trusted proxy's; beyond, one that waits for a
    request is closed for a new one.
    """
    timestamp_window_seconds: int = Field(default=300, ge=1, le=900)
    """A signed request's timestamp may be so far from the clock, either way."""
    failures_per_minute: int = Field(default=300, ge=1)
    """Failed authentications from one address in a minute, at most; further ones are answered 429."""
    trace_ratio: float = Field(default=0.1, ge=0, le=1)
    """The share of requests whose traces are recorded, where `OTEL_EXPORTER_OTLP_ENDPOINT` is set."""
    trusted_proxies: Networks = ""
    """Networks, separated by commas, whose X-Forwarded-For is believed."""

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if (self.console_key is None) != (self.console_secret is None):
            yield "set BANKSIDE_GATEWAY_CONSOLE_KEY and BANKSIDE_GATEWAY_CONSOLE_SECRET both, or neither."

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        host = self.operator_host
        if self.tls_key_file is None and not (
            is_on_this_machine(host) or host in self.hosts_in_plaintext()
        ):
            yield (
                f"set BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE and BANKSIDE_GATEWAY_TLS_KEY_FILE, or name {host} in"
                " BANKSIDE_PLAINTEXT_HOSTS: in production operators, who are shown secrets once, connect by TLS unless"
                " BANKSIDE_GATEWAY_OPERATOR_HOST is an address of this machine alone."
            )
        if self.tls_key_file is None and not self.trusted_proxies.strip():
            yield (
                "set BANKSIDE_GATEWAY_TRUSTED_PROXIES to the network of the proxy that terminates TLS before it, or"
                " BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE and BANKSIDE_GATEWAY_TLS_KEY_FILE: in production callers"
                " connect by TLS."
            )
