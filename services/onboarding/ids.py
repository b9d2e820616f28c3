"""What a command makes is named by the command, so that a second run finds it."""

from __future__ import annotations

from uuid import UUID, uuid5


def saga_id_of(command_id: UUID, message_id: str) -> UUID:
    """What the steps and new resources of one accepted message are named by.

    A command id alone would not do: an Idempotency-Key may come again for something new when it is no longer kept.
    Nor would a request id, which callers choose: two requests may have the same. The message id is made by us for each
    request, and a redelivery of the message has it again, so that a second run finds what the first one made.
    """
    return uuid5(command_id, message_id)


def derived(saga_id: UUID, name: str) -> UUID:
    """The id of something that the saga makes."""
    return uuid5(saga_id, name)
