"""What the broker and the way to it fail by."""

from __future__ import annotations

from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

BROKER_ERRORS = (AMQPError, ChannelInvalidStateError, OSError, TimeoutError)
"""What aio-pika raises when the broker or the way to it fails."""
