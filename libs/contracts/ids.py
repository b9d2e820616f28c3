"""Ids of ours: UUIDs with hyphens."""

from __future__ import annotations

from uuid import UUID

from libs.contracts.errors import NotFound

MADE_VERSIONS = frozenset({5, 7})
"""Of the UUIDs that name a command, a wire, a customer, and the sends of them: of a name, or of their time."""


class OurId:
    """Marker for `Annotated`, of a path value: it is an id of ours. A request with anything else there is 404 at the
    gateway: a tax number that a caller wrote in the place of an id travels no further.
    """


def parse_id(text: str) -> UUID | None:
    """The UUID that `text` writes in full; None for anything else, which no resource of ours can have as id."""
    try:
        value = UUID(text)
    except ValueError:
        return None
    return value if str(value) == text.lower() else None


def parse_made_id(text: str) -> UUID | None:
    """As `parse_id`, of an id that a service makes, as all are but those of persons, which callers may choose: of
    version 5 or 7. Other software at the same bank, which makes random ones (version 4), is told apart by this.
    """
    value = parse_id(text)
    return value if value is not None and value.version in MADE_VERSIONS else None


def id_of(text: str) -> UUID:
    """The id that a caller wrote. Raises NotFound for text that no resource of ours can have as id."""
    found = parse_id(text)
    if found is None:
        raise NotFound
    return found


def canonical(text: str) -> str:
    """The text by which a resource of this id is stored: a UUID in lower case, anything else as it is."""
    parsed = parse_id(text)
    return text if parsed is None else str(parsed)
