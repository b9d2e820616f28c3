"""Settings of a process with a listener, to which callers connect directly or by way of a load balancer."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

from pydantic import Field

from libs.runtime.process import Misconfigured
from libs.runtime.settings import ProcessSettings
from libs.secret_sources import BadSecret, require_private_file
from libs.tls import BadCertificates, server_context


class ListeningSettings(ProcessSettings):
    """Settings of a process to which callers connect."""

    drain_seconds: float = Field(default=1, ge=0, le=60)
    """How long requests are still taken at a stop, while each connection is closed after its next answer. At most a
    third of `BANKSIDE_SHUTDOWN_SECONDS`, so that requests under way have the rest.
    """
    tls_certificate_file: str | None = None
    """PEM, with the certificates between it and its CA; None: connections are not encrypted."""
    tls_key_file: str | None = None
    """The private key of the certificate, in PEM."""

    @property
    def longest_drain_seconds(self) -> float:
        return min(self.drain_seconds, self.shutdown_seconds / 3)

    @property
    def answering_seconds(self) -> float:
        """What requests under way have at a stop, after the drain and after what is arriving then. A fifth of what is
        left is for what the process writes and closes at its end.
        """
        return 0.8 * (self.shutdown_seconds - 2 * self.longest_drain_seconds)

    @property
    def last_answer_seconds(self) -> float:
        """From the beginning of a stop until a request is answered, at most: before aiohttp cancels what it has read of
        one, half of `answering_seconds` after the drain.
        """
        return self.longest_drain_seconds + 0.45 * self.answering_seconds

    def encryption(self) -> ssl.SSLContext | None:
        """TLS of the connections of callers; None: they are not encrypted. Raises Misconfigured."""
        names = f"{self.variable('tls_certificate_file')} and {self.variable('tls_key_file')}"
        if not (self.tls_certificate_file or self.tls_key_file):
            return None
        if not (self.tls_certificate_file and self.tls_key_file):
            raise Misconfigured(f"set {names} both, or neither.")
        try:
            return server_context(self.tls_certificate_file, self.tls_key_file)
        except BadCertificates as error:
            raise Misconfigured(f"set {names}: {error}.") from None

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        try:
            self.encryption()
        except Misconfigured as error:
            yield str(error)

    def refusals(self) -> Iterator[str]:
        yield from super().refusals()
        yield from self.refusals_of_key()

    def refusals_of_key(self) -> Iterator[str]:
        """What production refuses of the file of the certificate's key, at the start and when it is renewed."""
        if self.tls_key_file is not None:
            try:
                require_private_file(self.variable("tls_key_file"), self.tls_key_file)
            except BadSecret as error:
                yield str(error)
