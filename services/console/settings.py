"""What can be set of the console."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from libs.client.credentials import Credentials
from libs.http_urls import HttpUrl, is_http_url
from libs.runtime.listening_settings import ListeningSettings
from libs.runtime.production import is_on_this_machine
from libs.runtime.settings import CaFile, Networks, settings_of
from libs.tls import client_context


def _origin(url: str | None) -> str | None:
    """Scheme, host and port of a URL, as browsers write it. An empty setting is not set. Raises ValueError."""
    if not url:
        return None
    if not is_http_url(url) or urlsplit(url).path.strip("/"):
        raise ValueError("it is http:// or https:// in lower case, a host, and a port")
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    port = f":{parts.port}" if parts.port not in (None, usual) else ""
    return f"{parts.scheme}://{host}{port}"


def _without_slash(url: str) -> str:
    return url.rstrip("/")


class Settings(ListeningSettings):
    service: ClassVar[str] = "console"
    identified_by: ClassVar[str] = "operator_secret"
    model_config = settings_of("CONSOLE")

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = Field(default=8082, ge=1, le=65535)
    """The port to listen on."""
    public_url: Annotated[str | None, AfterValidator(_origin)] = None
    """Where browsers find the console; requests for another host are refused. None: on this machine, at its port."""

    trusted_proxies: Networks = ""
    """Networks, separated by commas, whose X-Forwarded-For is believed."""

    operator_url: Annotated[HttpUrl, AfterValidator(_without_slash)] = "http://127.0.0.1:8081"
    """The URL of the gateway's listener for operators."""
    operator_ca_file: CaFile = None
    """The CA of the gateway's certificate; None: those that the system trusts."""
    operator_key: SecretStr
    """The console's own subscription key, of role `console`."""
    operator_secret: SecretStr
    """The secret of the key in `BANKSIDE_CONSOLE_OPERATOR_KEY`."""

    answer_seconds: float = Field(default=10, gt=0, le=30)
    """What the gateway has not answered within this time is shown as not answered; twice as long for what changes
    something.
    """

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers reach it by TLS, here or at a proxy."""
        return self.origin.startswith("https://")

    @property
    def origin(self) -> str:
        if self.public_url is not None:
            return self.public_url
        scheme = "https" if self.tls_certificate_file else "http"
        origin = _origin(f"{scheme}://127.0.0.1:{self.port}")
        assert origin is not None
        return origin

    @property
    def origins(self) -> frozenset[str]:
        """Where requests may be meant for. A console on this machine is found by each of its names."""
        parts = urlsplit(self.origin)
        if self.public_url is not None and not is_on_this_machine(parts.hostname or ""):
            return frozenset({self.origin})
        port = f":{parts.port}" if parts.port is not None else ""
        names = ("127.0.0.1", "localhost", "[::1]")
        return frozenset(f"{parts.scheme}://{name}{port}" for name in names)

    def credentials(self) -> Credentials:
        return Credentials(
            self.operator_key.get_secret_value(), self.operator_secret.get_secret_value()
        )

    def encryption_to_gateway(self) -> ssl.SSLContext:
        return client_context(self.operator_ca_file)

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        if not self.is_encrypted:
            yield (
                "set BANKSIDE_CONSOLE_PUBLIC_URL to https://… (TLS at a proxy before it), or"
                " BANKSIDE_CONSOLE_TLS_CERTIFICATE_FILE and BANKSIDE_CONSOLE_TLS_KEY_FILE: in production operators"
                " connect by TLS."
            )
        host = urlsplit(self.operator_url).hostname or ""
        if not (
            self.operator_url.startswith("https://")
            or is_on_this_machine(host)
            or host in self.hosts_in_plaintext()
        ):
            yield (
                f"set {self.variable('operator_url')} to https://…: in production the connection to {host} is to be"
                " encrypted (or name it in BANKSIDE_PLAINTEXT_HOSTS)."
            )
