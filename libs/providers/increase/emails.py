"""E-mail addresses as Increase takes them."""

from __future__ import annotations

import email_validator

LONGEST_EMAIL = 200


def email_at_increase(address: str) -> str | None:
    """The address with its domain in ASCII, in at most 200 characters; None: it has no such form.

    Ours have their domains in Unicode. Increase's document says `format: email`, which is ASCII, and takes an entity
    without an address.
    """
    try:
        parsed = email_validator.validate_email(address, check_deliverability=False)
    except email_validator.EmailNotValidError:
        return None  # of an earlier release, whose rules were wider
    email = parsed.ascii_email
    return email if email is not None and len(email) <= LONGEST_EMAIL else None
