"""Forms of actions that were sent: each is carried out once, also when it is sent again by a reload of its answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from cachetools import TTLCache

from libs.contracts.errors import BanksideError, InternalError, OutcomeUnknown

FORM_FIELD = "form"
CAPACITY = 10_000
REMEMBERED_SECONDS = 3600.0


class SentAlready(Exception):
    """This form was sent before, and what it asks for may be done."""


class SentForms:
    """The numbers of the forms that were sent to this process in the last hour."""

    def __init__(self) -> None:
        self._sent: TTLCache[str, bool] = TTLCache(CAPACITY, REMEMBERED_SECONDS)

    @contextmanager
    def once(self, form: Mapping[str, str]) -> Iterator[None]:
        """Around what a form asks for. A form that is refused may be sent again; one without a number, as well.

        Raises:
            SentAlready
        """
        number = form.get(FORM_FIELD)
        if not number:
            yield
            return
        if number in self._sent:
            raise SentAlready
        self._sent[number] = True
        try:
            yield
        except (OutcomeUnknown, InternalError):
            raise
        except BanksideError:
            self._sent.pop(number, None)
            raise


def new_form_number() -> str:
    return secrets.token_urlsafe(16)
