"""The key rings of an environment's services."""

from __future__ import annotations

from deploy.local.services import SHARING, Secrets
from libs.messaging.message_sealer import MessageSealer
from libs.persistence.sealing import Keyring


def storage_of(secrets: Secrets, service: str) -> Keyring:
    return Keyring(secrets.storage_keys[service])


def sealer_of(secrets: Secrets, service: str) -> MessageSealer:
    """What seals and opens the messages of this service."""
    rings = {
        peer: Keyring(secrets.shared_keys["-".join(pair)])
        for pair in SHARING
        for peer in pair
        if service in pair and peer != service
    }
    return MessageSealer(service, rings)
