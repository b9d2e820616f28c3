"""Settings that several services share: the broker, the keys that seal, and providers."""

from __future__ import annotations

from pydantic import Field, SecretStr

from libs.persistence.inbox import LEASE_SECONDS
from libs.persistence.sealing import BadKey, Keyring, LookupKey
from libs.runtime.process import Misconfigured
from libs.runtime.settings import CaFile, ServiceSettings


class MessagingSettings(ServiceSettings):
    """A service that takes part in messaging."""

    amqp_url: SecretStr
    amqp_ca_file: CaFile = None
    """The CA of the broker's certificate; None: those that the system trusts."""
    sealing_keys: SecretStr
    lookup_key: SecretStr

    def keyring(self) -> Keyring:
        """Raises Misconfigured."""
        try:
            return Keyring(self.sealing_keys.get_secret_value())
        except BadKey as error:
            raise Misconfigured(f"set BANKSIDE_SEALING_KEYS: {error}.") from None

    def lookup(self) -> LookupKey:
        """Raises Misconfigured."""
        try:
            return LookupKey(self.lookup_key.get_secret_value())
        except BadKey as error:
            raise Misconfigured(f"set BANKSIDE_LOOKUP_KEY: {error}.") from None


class CommandSettings(MessagingSettings):
    """A service that carries out commands."""

    lease_seconds: float = Field(default=LEASE_SECONDS, ge=1, le=300)
    """After a crash, another process goes on with a command when so long has passed."""


class ProviderSettings(ServiceSettings):
    """A service that calls providers."""

    provider_ca_file: CaFile = None
    """The CAs of the providers' certificates; None: those that the system trusts."""
