"""Businesses and persons against their records at the identity provider and at core banking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from libs.contracts.customers import CustomerStatus
from libs.contracts.reconciliation import RecordedCustomer, RecordedParty
from services.reconciliation.handlers.customer_ids import ids_of
from services.reconciliation.handlers.party_fields import differing
from services.reconciliation.models import Difference
from services.reconciliation.ports import CoreCustomer, EmailForm, IdentityRecord, TextForm
from services.reconciliation.sensitive_digests import Digest

FINAL = frozenset({CustomerStatus.DENIED, CustomerStatus.CANCELED})
"""Statuses of customers that core banking has closed and whose identity status has no effect any more."""
IDENTITY_CLOSED = frozenset({"canceled", "denied"})
CORE_CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A record at either provider."""

    record_id: str
    customer_id: str
    business_id: str
    kind: str
    status: str | None
    is_closed: bool
    fields: dict[str, Any]
    fields_are_partial: bool = False
    email_form: EmailForm | None = None
    text_form: TextForm | None = None
    made_under: str | None = None


def of_identity(records: Iterable[IdentityRecord]) -> list[ProviderRecord]:
    return [
        ProviderRecord(
            record.identity_id,
            record.customer_id,
            record.business_customer_id or record.customer_id,
            record.kind,
            record.status,
            record.status in IDENTITY_CLOSED,
            record.fields,
            record.fields_are_partial,
            record.email_form,
            record.text_form,
            record.made_under,
        )
        for record in records
    ]


def of_core(records: Iterable[CoreCustomer]) -> list[ProviderRecord]:
    return [
        ProviderRecord(
            record.core_id,
            record.customer_id,
            record.business_customer_id or record.customer_id,
            record.kind,
            record.status,
            record.status == CORE_CLOSED,
            record.fields,
            record.fields_are_partial,
            record.email_form,
            record.text_form,
            record.made_under,
        )
        for record in records
    ]


def judge_identity(
    customer: RecordedCustomer | None,
    records: Sequence[ProviderRecord],
    digest: Digest,
) -> list[Difference]:
    """The differences between a customer's parties here and their records at the identity provider.

    Args:
        records: those of the business and its persons, and those under the ids that we hold for them.
    """
    differences = _unknown("identity", customer, records)
    if customer is None:
        return differences
    by_id = {record.record_id: record for record in records}
    is_final = customer.status in FINAL
    for party in customer.parties:
        if party.identity_id is None:
            continue
        record = by_id.get(party.identity_id)
        differences += _known(
            "identity", customer, party, party.identity_id, record, digest, is_final=is_final
        )
        if record is None or record.status is None or is_final:
            continue
        held = party.identity_status
        if held == record.status and held in IDENTITY_CLOSED:
            held = customer.status.value  # the verdict is stored, and had no effect on the customer
        if record.status != held:
            ours, theirs = {"status": held}, {"status": record.status}
            differences.append(
                _difference("identity_status", customer, party, record.record_id, ours, theirs)
            )
    return differences


def judge_core(
    customer: RecordedCustomer | None,
    records: Sequence[ProviderRecord],
    digest: Digest,
) -> list[Difference]:
    """As `judge_identity`, for core banking."""
    differences = _unknown("core", customer, records)
    if customer is None:
        return differences
    by_id = {record.record_id: record for record in records}
    is_final = customer.status in FINAL
    for party in customer.parties:
        if party.core_id is None:
            continue
        record = by_id.get(party.core_id)
        differences += _known(
            "core", customer, party, party.core_id, record, digest, is_final=is_final
        )
        if record is not None and record.is_closed != is_final:
            ours, theirs = {"status": customer.status.value}, {"status": record.status}
            differences.append(
                _difference("core_status", customer, party, record.record_id, ours, theirs)
            )
    return differences


def _unknown(
    provider: str, customer: RecordedCustomer | None, records: Sequence[ProviderRecord]
) -> list[Difference]:
    """Records that are open at the provider and that no business or person of ours holds."""
    held: set[str | None] = set()
    if customer is not None:
        held = {party.identity_id for party in customer.parties}
        held |= {party.core_id for party in customer.parties}
    return [
        Difference(
            f"{provider}_customer_unknown_to_us",
            record.record_id,
            {
                f"{provider}_id": record.record_id,
                "party_id": record.customer_id,
                **ids_of(record.business_id, customer),
            },
            None if customer is None else {"status": customer.status.value},
            {"kind": record.kind, "status": record.status},
        )
        for record in records
        if not record.is_closed and record.record_id not in held
    ]


def _known(
    provider: str,
    customer: RecordedCustomer,
    party: RecordedParty,
    record_id: str,
    record: ProviderRecord | None,
    digest: Digest,
    *,
    is_final: bool,
) -> list[Difference]:
    """The provider's record under an id that we hold: whether it exists, its owner and its fields."""
    if record is None:
        ours = {"status": customer.status.value}
        kind = f"{provider}_customer_missing"
        return [_difference(kind, customer, party, record_id, ours, None)]
    found = []
    owner = (party.customer_id, customer.customer_id)
    if (record.customer_id, record.business_id) != owner:
        theirs = {"customer_id": record.business_id, "party_id": record.customer_id}
        kind = f"{provider}_customer_owner"
        found.append(_difference(kind, customer, party, record_id, {}, theirs))
    if not is_final and not record.is_closed:
        fields = differing(
            party,
            record.fields,
            digest,
            partial=record.fields_are_partial,
            email_form=record.email_form,
            text_form=record.text_form,
        )
        if fields is not None:
            kind, facts = f"{provider}_fields", fields.facts
            ours, theirs = fields.ours, fields.theirs
            found.append(_difference(kind, customer, party, record_id, ours, theirs, facts))
    return found


def _difference(
    kind: str,
    customer: RecordedCustomer,
    party: RecordedParty,
    record_id: str,
    ours: dict[str, Any] | None,
    theirs: dict[str, Any] | None,
    facts: dict[str, Any] | None = None,
) -> Difference:
    provider = kind.partition("_")[0]
    ids = {
        f"{provider}_id": record_id,
        "party_id": party.customer_id,
        **ids_of(customer.customer_id, customer),
    }
    return Difference(kind, record_id, ids, ours, theirs, facts)
