"""Sparse updates: the merged whole is what has to be valid, and the changed fields are sent to providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from libs.contracts.binding import error_details
from libs.contracts.customers import Business
from libs.contracts.errors import Invalid
from libs.contracts.model import OF_ANY_RELEASE, Model
from services.onboarding.models import PersonDetails

ModelT = TypeVar("ModelT", bound=Model)


def amended_business(business: Business, update: Model) -> Business:
    """Raises Invalid, with locations as the caller sent them."""
    whole = _merged(business.model_dump(), update.model_dump(exclude_unset=True))
    if whole.get("mailing_address") is None:
        whole["mailing_address"] = whole["business_address"]
    return _valid(Business, whole, ["body", "business"])


def amended_person(person: PersonDetails, update: Model) -> PersonDetails:
    """Raises Invalid, with locations as the caller sent them."""
    sent = update.model_dump(exclude_unset=True, exclude={"person_id"})
    return _valid(PersonDetails, _merged(person.model_dump(), sent), ["body"])


def changes(before: Model, after: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that differ: as they are afterwards, and as they were, to restore them."""
    old, new = before.model_dump(), after.model_dump()
    differing = [name for name in new if new[name] != old[name]]
    return {name: new[name] for name in differing}, {name: old[name] for name in differing}


def _merged(known: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """`sent` over `known`: null takes a field back to its default, an object is merged, all else replaces."""
    whole = dict(known)
    for name, value in sent.items():
        if value is None:
            whole.pop(name, None)
        elif isinstance(value, Mapping):
            whole[name] = _merged(whole.get(name) or {}, value)
        else:
            whole[name] = value
    return whole


def _valid(model: type[ModelT], whole: Mapping[str, Any], loc: list[str]) -> ModelT:
    try:
        return model.model_validate(whole, context={OF_ANY_RELEASE: True})
    except ValidationError as error:
        details = error_details(error, model, {}, "body")
        raise Invalid([{**item, "loc": [*loc, *item["loc"][1:]]} for item in details]) from None
