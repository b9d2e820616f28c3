"""What the rotation of a key changes, of a caller's key as of an operator's."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Interval, bindparam, case, func

from services.gateway.tables import credentials

_OVERLAP = bindparam("overlap", type_=Interval)

ROTATED = {
    credentials.c.secret: bindparam("new_secret"),
    credentials.c.previous_secret: case((timedelta() < _OVERLAP, credentials.c.secret)),
    credentials.c.previous_secret_expires_at: case((timedelta() < _OVERLAP, func.now() + _OVERLAP)),
}
"""Without an overlap the secret before is not kept: it may be stolen, and a gateway whose clock is behind the
database's would go on to take it.
"""
