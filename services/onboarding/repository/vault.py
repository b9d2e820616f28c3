"""Models as JSON with their sensitive fields sealed, and the keyed hashes by which two of those are found again."""

from __future__ import annotations

from typing import TypeVar

from libs.contracts.customers import ExternalBankAccount
from libs.contracts.exact_json import decode, encode
from libs.contracts.model import Model
from libs.contracts.sensitive import SensitiveShape, open_payload, seal_payload
from libs.persistence.sealing import Keyring, LookupKeys
from services.onboarding.repository.stored import read_stored

ModelT = TypeVar("ModelT", bound=Model)


class Vault:
    """What is sealed is bound to `context`, the row it stands in, and opens nowhere else."""

    def __init__(self, keyring: Keyring, lookup: LookupKeys) -> None:
        self._keyring = keyring
        self._lookup = lookup

    def seal(self, model: Model, context: str) -> str:
        shape = SensitiveShape.of(type(model))
        return encode(seal_payload(shape, model.model_dump(), self._keyring, context)).decode()

    def open(self, model: type[ModelT], text: str, context: str) -> ModelT:
        """The model as it was sealed. The present rules of input are not applied."""
        shape = SensitiveShape.of(model)
        return read_stored(model, open_payload(shape, decode(text), self._keyring, context))

    def ein_digests(self, ein: str) -> tuple[bytes, ...]:
        """The EIN's digests, one for each lookup key, the first key's first."""
        return self._lookup.digests("onboarding.ein", ein)

    def number_digests(self, account: ExternalBankAccount) -> tuple[bytes, ...]:
        number = f"{account.routing_number}/{account.account_number}"
        return self._lookup.digests("onboarding.external_account", number)
