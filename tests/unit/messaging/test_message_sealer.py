"""What travels sealed between two services opens with the ring of those two, and with no other."""

from __future__ import annotations

import pytest

from deploy.local.services import FINDING, SHARING, STORING, Secrets
from libs.contracts.onboarding_operations import FIND_RECORDED_CUSTOMERS, ONBOARD_CUSTOMER
from libs.messaging.envelope import command_context, reply_context
from libs.messaging.message_sealer import peers_of
from libs.persistence.sealing import CannotOpen, Keyring
from services.gateway.settings import Settings as Gateway
from services.ledger_read.settings import Settings as LedgerRead
from services.onboarding.settings import Settings as Onboarding
from services.payments.settings import Settings as Payments
from services.reconciliation.settings import Settings as Reconciliation
from services.webhook_dispatcher.settings import Settings as WebhookDispatcher
from tests.support.keys import sealer_of

SETTINGS = (Gateway, LedgerRead, Onboarding, Payments, Reconciliation, WebhookDispatcher)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.service)
def test_each_service_has_a_ring_for_each_of_its_peers_and_for_what_it_stores(
    settings: type[Gateway],
) -> None:
    service = settings.service
    rings = {name for name in settings.model_fields if name.endswith("_keys")}

    assert rings == {
        *(f"{peer}_keys" for peer in peers_of(service)),
        *({"storage_keys"} if service in STORING else ()),
        *({"lookup_keys"} if service in FINDING else ()),
    }


def test_a_message_opens_at_its_other_end_and_nowhere_else() -> None:
    secrets = Secrets.generate()
    of = {service: sealer_of(secrets, service) for pair in SHARING for service in pair}
    command = f"{command_context(ONBOARD_CUSTOMER, '1')}#/ein"
    reply = f"{reply_context(FIND_RECORDED_CUSTOMERS, '1')}#/0/ein"

    sealed, answered = of["gateway"].seal("text", command), of["onboarding"].seal("text", reply)

    assert of["onboarding"].open(sealed, command) == "text"
    assert of["reconciliation"].open(answered, reply) == "text"
    for pair, ring in secrets.shared_keys.items():
        if pair != "gateway-onboarding":
            with pytest.raises(CannotOpen):
                Keyring(ring).open(sealed, command)
