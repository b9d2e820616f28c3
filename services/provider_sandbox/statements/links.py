"""Links to statements that need no token: signed, good until a moment that they carry.

The key is a setting, so that links hold across restarts and every process makes the same ones.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from services.provider_sandbox.operations import Refusal

PURPOSE = b"provider_sandbox statement links"


@dataclass(frozen=True)
class Link:
    url: str
    expires_at: datetime


class Links:
    def __init__(self, public_url: str, key: str, seconds: int) -> None:
        self._base = public_url.rstrip("/")
        self._key = hmac.digest(key.encode(), PURPOSE, "sha256")
        self._seconds = seconds

    def to_statement(self, statement_id: str) -> Link:
        """A new link, good from now on for as long as the setting says."""
        expires = int(time.time()) + self._seconds
        signature = self._signature(statement_id, str(expires))
        return Link(
            f"{self._base}/documents/statements/{statement_id}.pdf"
            f"?expires={expires}&signature={signature}",
            datetime.fromtimestamp(expires, UTC),
        )

    def check(self, statement_id: str, expires: str, signature: str) -> None:
        """Refuse, with 403, what was not given out as it is or is no longer good."""
        wanted = self._signature(statement_id, expires)
        if not hmac.compare_digest(wanted.encode(), signature.encode()):
            raise Refusal(403, "invalid_signature", "The link is not one that was given out.")
        if not re.fullmatch("[0-9]{1,12}", expires, re.ASCII) or int(expires) <= time.time():
            raise Refusal(403, "expired", "The link is no longer good.")

    def _signature(self, statement_id: str, expires: str) -> str:
        message = f"{statement_id}\n{expires}".encode()
        return hmac.new(self._key, message, hashlib.sha256).hexdigest()
