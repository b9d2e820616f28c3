"""Settings that several services share: the broker, and the keys that seal what travels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, field_validator

from libs.http_urls import HttpUrl
from libs.messaging.message_sealer import MessageSealer, peers_of
from libs.messaging.topology import QueueType
from libs.persistence.inbox import LEASE_SECONDS, LONGEST_LEASE_SECONDS
from libs.persistence.sealing import BadKey, Keyring, LookupKeys
from libs.runtime.process import Misconfigured
from libs.runtime.production import plaintext_server
from libs.runtime.settings import KEY_RING, CaFile, ServiceSettings

LOOKUP_KEYS = "lookup_keys"
"""The setting of the keys by whose digests values are found; it seals nothing."""


def _if_set(url: str | None) -> str | None:
    """An empty setting is not set."""
    return url or None


def _is_amqp_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # such as a port that is no number
        return False


TracesEndpoint = Annotated[HttpUrl | None, BeforeValidator(_if_set)]


class MessagingSettings(ServiceSettings):
    """A service that takes part in messaging. For each of its peers (`peers_of`) it has a setting `<peer>_keys`."""

    amqp_url: SecretStr
    """The broker, with the service's own user, which has its name: the broker proves by it who sent a message."""
    amqp_ca_file: CaFile = None
    """The CA of the broker's certificate; None: those that the system trusts."""
    query_queues: QueueType = "classic"
    """The type of the queues that queries wait in. A classic one is fast, and in a cluster of brokers gone while its
    node is; a quorum queue is on several nodes, and its service then probes all its consumers. It is chosen before
    the first start: afterwards the broker refuses another type until `<service>.queries` is deleted there.
    """
    traces_endpoint: TracesEndpoint = Field(
        default=None, validation_alias=AliasChoices("OTEL_EXPORTER_OTLP_ENDPOINT")
    )
    """The collector of traces, which takes OTLP over HTTP at `/v1/traces` below this URL; None: there are no traces.

    OpenTelemetry's own name, since its exporter reads the others of that family, such as the headers by which a
    collector knows who sends.
    """

    @property
    def broker_is_cluster(self) -> bool:
        return self.query_queues == "quorum"

    @property
    def collector(self) -> str | None:
        return self.traces_endpoint

    @field_validator("amqp_url")
    @classmethod
    def _names_the_service(cls, amqp_url: SecretStr) -> SecretStr:
        url = amqp_url.get_secret_value()
        if not _is_amqp_url(url):
            raise ValueError(
                "it has to be amqp://USER:PASSWORD@HOST:PORT/VHOST or amqps://…, the password percent-encoded"
            )
        if urlsplit(url).username != cls.service:
            raise ValueError(f"its user has to be {cls.service}")
        return amqp_url

    def message_sealer(self) -> MessageSealer:
        """Raises Misconfigured."""
        rings = {peer: self.ring(f"{peer}_keys") for peer in peers_of(self.service)}
        return MessageSealer(self.service, rings)

    def rings(self) -> dict[str, Keyring]:
        """All rings by their variables. Raises Misconfigured."""
        return {self.variable(name): ring for name, ring in self._rings().items()}

    def check_values(self) -> dict[str, Mapping[str, bytes]]:
        """The check values of all keys, also those that seal nothing, by the settings of their rings. Raises
        Misconfigured.
        """
        values = {name: ring.check_values for name, ring in self._rings().items()}
        if LOOKUP_KEYS in type(self).model_fields:
            values[LOOKUP_KEYS] = self.lookup().check_values
        return values

    def _rings(self) -> dict[str, Keyring]:
        fields = [name for name in type(self).model_fields if name.endswith(KEY_RING)]
        return {name: self.ring(name) for name in fields if name != LOOKUP_KEYS}

    def lookup(self) -> LookupKeys:
        """Raises Misconfigured."""
        try:
            return LookupKeys(getattr(self, LOOKUP_KEYS).get_secret_value())
        except BadKey as error:
            raise Misconfigured(f"set {self.variable(LOOKUP_KEYS)}: {error}.") from None

    def ring(self, field: str) -> Keyring:
        """The key ring of this setting. Raises Misconfigured."""
        try:
            return Keyring(getattr(self, field).get_secret_value(), self.variable(field))
        except BadKey as error:
            raise Misconfigured(f"set {self.variable(field)}: {error}.") from None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        readings: list[Callable[[], object]] = [self.message_sealer, self.rings]
        if LOOKUP_KEYS in type(self).model_fields:
            readings.append(self.lookup)
        told = dict.fromkeys(sentence for read in readings for sentence in _problems_of(read))
        yield from told

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        url, allowed = self.amqp_url.get_secret_value(), self.hosts_in_plaintext()
        yield from plaintext_server(self.variable("amqp_url"), url, "amqps", allowed)
        if self.traces_endpoint is not None:
            variable = self.variable("traces_endpoint")
            yield from plaintext_server(variable, self.traces_endpoint, "https", allowed)


def _problems_of(read: Callable[[], object]) -> Iterator[str]:
    try:
        read()
    except Misconfigured as error:
        yield str(error)


class CommandSettings(MessagingSettings):
    """A service that carries out commands."""

    lease_seconds: float = Field(default=LEASE_SECONDS, ge=1, le=LONGEST_LEASE_SECONDS)
    """After a crash, another process goes on with a command when this time has passed."""
