"""Entities: corporations, their beneficial owners, and the validation of both."""

from __future__ import annotations

from typing import Any

from increase import types as sdk
from increase.types import simulations as simulated

from tests.support.increase_bank.calls import Call, Done, Operation
from tests.support.increase_bank.errors import InvalidOperation, InvalidParameters, ObjectNotFound
from tests.support.increase_bank.kinds import new_id
from tests.support.increase_bank.lists import objects, page
from tests.support.increase_bank.shapes import Json
from tests.support.increase_bank.store import Store
from tests.support.increase_bank.verdicts import is_denied, issue, validation

KIND, OWNER = "entity", "entity_beneficial_owner"
STRUCTURES = ("corporation", "natural_person", "joint", "trust", "government_authority")
TAX_NUMBERS = ("social_security_number", "individual_taxpayer_identification_number")
INDIVIDUAL = ("name", "date_of_birth", "address", "identification")


def create(call: Call) -> Done:
    body = call.body
    if body["structure"] != "corporation":
        raise InvalidParameters.of("structure", "this bank opens accounts for corporations only")
    if "corporation" not in body:
        raise InvalidParameters.of("corporation", "is required for this structure")
    corporation = dict(body["corporation"])
    submitted = corporation.pop("beneficial_owners")
    exempt = corporation.get("beneficial_ownership_exemption_reason") is not None
    if not exempt and not any("control" in owner["prongs"] for owner in submitted):
        raise InvalidParameters.of(
            "corporation.beneficial_owners", "one must have the prong control"
        )
    _check_legal_identifier(corporation["legal_identifier"])
    corporation["legal_identifier"].setdefault("category", "us_employer_identification_number")
    entity_id = new_id(KIND)
    owners = [_new_owner(entity_id, owner) for owner in submitted]
    numbers = {body["id"]: number for body, number in owners}
    corporation["beneficial_owners"] = [_listed(owner) for owner, _ in owners]
    entity: Json = {
        "id": entity_id,
        "type": KIND,
        "structure": "corporation",
        "corporation": corporation,
        "description": body.get("description"),
        "idempotency_key": call.key,
        "details_confirmed_at": None,
        "risk_rating": body.get("risk_rating"),
        "status": "active",
        "supplemental_documents": [],
        "terms_agreements": body.get("terms_agreements", []),
        "third_party_verification": body.get("third_party_verification"),
    }
    _validate(call, entity, numbers, first=True)
    call.store.put(entity)
    for owner, number in owners:
        call.store.put(owner, {"number": number})
    return Done(KIND, entity_id)


def _validate(call: Call, entity: Json, numbers: dict[str, str], *, first: bool) -> None:
    corporation = entity["corporation"]
    legal = corporation["legal_identifier"]["value"]
    if is_denied(legal, *numbers.values()):
        if not first:
            raise InvalidOperation("The identity could not be verified.")
        entity["status"] = "archived"
    if first and call.conduct.validation_seconds > 0:
        entity["validation"] = {"status": "pending", "issues": []}
        call.store.due(entity["id"], call.conduct.validation_seconds)
        return
    entity["validation"] = validation(corporation, numbers)


def decide(store: Store, entity_id: str) -> None:
    """Validation of a new entity has come to its end."""
    entity = store.get(KIND, entity_id)
    entity["validation"] = validation(entity["corporation"], _numbers(store, entity))
    store.save(entity)


def _numbers(store: Store, entity: Json) -> dict[str, str]:
    owners = entity["corporation"]["beneficial_owners"]
    return {owner["id"]: store.private(owner["id"]).get("number", "") for owner in owners}


def _check_legal_identifier(identifier: Json) -> None:
    category = identifier.get("category", "us_employer_identification_number")
    value = identifier["value"]
    if category == "us_employer_identification_number" and not _is_tax_number(value):
        raise InvalidParameters.of(
            "corporation.legal_identifier.value", "must be nine digits without separators"
        )


def _is_tax_number(value: str) -> bool:
    return len(value) == 9 and value.isascii() and value.isdigit()


def _new_owner(entity_id: str, submitted: Json) -> tuple[Json, str]:
    """The owner as it is answered, and the identification number, of which only four digits ever are."""
    if not submitted["prongs"]:
        raise InvalidParameters.of("prongs", "at least one is required")
    individual = submitted["individual"]
    owner: Json = {
        "id": new_id(OWNER),
        "type": OWNER,
        "entity_id": entity_id,
        "company_title": submitted.get("company_title"),
        "individual": {
            "name": individual["name"],
            "date_of_birth": individual["date_of_birth"],
            "address": dict(individual["address"]),
            "identification": _identification(individual["identification"]),
        },
        "prongs": submitted["prongs"],
    }
    return owner, individual["identification"]["number"]


def _identification(submitted: Json) -> Json:
    number = submitted["number"]
    if submitted["method"] in TAX_NUMBERS and not _is_tax_number(number):
        raise InvalidParameters.of(
            "identification.number", "must be nine digits without separators"
        )
    return {"method": submitted["method"], "number_last4": number[-4:]}


def _listed(owner: Json) -> Json:
    """An owner as entities show it."""
    return {name: owner[name] for name in ("id", "company_title", "individual", "prongs")}


def update(call: Call) -> Done:
    entity = _usable(call.store, call.id)
    changes = dict(call.body.get("corporation", {}))
    for other in STRUCTURES[1:]:
        if other in call.body:
            raise InvalidOperation(f"The entity is not a {other}.")
    if "legal_identifier" in changes:
        _check_legal_identifier(changes["legal_identifier"])
        changes["legal_identifier"].setdefault("category", "us_employer_identification_number")
    if "address" in changes:
        address = changes["address"]
        changes["address"] = address | {
            name: address.get(name) for name in ("line2", "city", "state", "zip")
        }
    entity["corporation"] |= changes
    for name in ("details_confirmed_at", "risk_rating", "third_party_verification"):
        if name in call.body:
            entity[name] = call.body[name]
    entity["terms_agreements"] += call.body.get("terms_agreements", [])
    if changes:
        _validate(call, entity, _numbers(call.store, entity), first=False)
        call.store.settled(entity["id"])
    call.store.save(entity)
    return Done(KIND, call.id)


def archive(call: Call) -> Done:
    entity = _usable(call.store, call.id)
    open_accounts = call.store.row(
        "SELECT id FROM object WHERE entity_id = ? AND kind = 'account' AND status = 'open'",
        (call.id,),
    )
    if open_accounts is not None:
        raise InvalidOperation(f"Account {open_accounts[0]} of the entity is open.")
    entity["status"] = "archived"
    call.store.save(entity)
    return Done(KIND, call.id)


def _usable(store: Store, entity_id: str) -> Json:
    entity = store.get(KIND, entity_id)
    if entity["status"] == "archived":
        raise InvalidOperation("The entity is archived.")
    return entity


def simulate_validation(call: Call) -> Done:
    entity = _usable(call.store, call.id)
    owners = entity["corporation"]["beneficial_owners"]
    first_owner = owners[0]["id"] if owners else None
    issues = [
        issue(
            item["category"],
            first_owner if item["category"].startswith("beneficial_owner") else None,
        )
        for item in call.body["issues"]
    ]
    entity["validation"] = {"status": "invalid" if issues else "valid", "issues": issues}
    call.store.settled(call.id)
    call.store.save(entity)
    return Done(KIND, call.id)


def create_owner(call: Call) -> Done:
    entity = _usable(call.store, call.body["entity_id"])
    owner, number = _new_owner(entity["id"], call.body)
    owner["idempotency_key"] = call.key
    call.store.put(owner, {"number": number})
    entity["corporation"]["beneficial_owners"].append(_listed(owner))
    _validate(call, entity, _numbers(call.store, entity), first=False)
    call.store.save(entity)
    return Done(OWNER, owner["id"])


def update_owner(call: Call) -> Done:
    owner = _present_owner(call.store, call.id)
    entity = _usable(call.store, owner["entity_id"])
    private = call.store.private(call.id)
    changes: dict[str, Any] = {n: call.body[n] for n in INDIVIDUAL if n in call.body}
    if "identification" in changes:
        private["number"] = changes["identification"]["number"]
        changes["identification"] = _identification(changes["identification"])
    owner["individual"] |= changes
    if "prongs" in call.body:
        owner["prongs"] = call.body["prongs"]
    call.store.save(owner, private)
    listed = entity["corporation"]["beneficial_owners"]
    entity["corporation"]["beneficial_owners"] = [
        _listed(owner) if item["id"] == owner["id"] else item for item in listed
    ]
    _validate(call, entity, _numbers(call.store, entity), first=False)
    call.store.save(entity)
    return Done(OWNER, call.id)


def archive_owner(call: Call) -> Done:
    owner = _present_owner(call.store, call.id)
    entity = _usable(call.store, owner["entity_id"])
    listed = entity["corporation"]["beneficial_owners"]
    entity["corporation"]["beneficial_owners"] = [i for i in listed if i["id"] != owner["id"]]
    call.store.save(owner, call.store.private(call.id) | {"archived": 1})
    call.store.save(entity)
    return Done(OWNER, call.id)


def _present_owner(store: Store, owner_id: str) -> Json:
    owner = store.get(OWNER, owner_id)
    if store.private(owner_id).get("archived"):
        raise ObjectNotFound(f"The beneficial owner {owner_id} is archived.")
    return owner


OPERATIONS = (
    Operation("POST", "/entities", sdk.EntityCreateParams, create),
    Operation(
        "GET",
        "/entities",
        sdk.EntityListParams,
        lambda call: page(call.store, objects(KIND), call.query, call.conduct.page_limit),
    ),
    Operation("GET", "/entities/{id}", None, lambda call: call.store.text(KIND, call.id)),
    Operation("PATCH", "/entities/{id}", sdk.EntityUpdateParams, update),
    Operation("POST", "/entities/{id}/archive", None, archive),
    Operation(
        "POST",
        "/simulations/entities/{id}/update_validation",
        simulated.EntityUpdateValidationParams,
        simulate_validation,
    ),
    Operation("POST", "/entity_beneficial_owners", sdk.BeneficialOwnerCreateParams, create_owner),
    Operation(
        "GET",
        "/entity_beneficial_owners",
        sdk.BeneficialOwnerListParams,
        lambda call: page(
            call.store, objects(OWNER, hide_archived=True), call.query, call.conduct.page_limit
        ),
    ),
    Operation(
        "GET", "/entity_beneficial_owners/{id}", None, lambda call: call.store.text(OWNER, call.id)
    ),
    Operation(
        "PATCH", "/entity_beneficial_owners/{id}", sdk.BeneficialOwnerUpdateParams, update_owner
    ),
    Operation("POST", "/entity_beneficial_owners/{id}/archive", None, archive_owner),
)
