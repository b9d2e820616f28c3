"""Every error travels in a reply and comes out as what it was."""

from __future__ import annotations

from libs.contracts.errors import ERRORS, BanksideError, InternalError, Invalid, Unavailable
from libs.messaging.envelope import Reply, WireError, decode_replies, encode
from tests.support.with_each import with_each

RAISED = [cls("why", extra={"k": 1}) for cls in ERRORS.values() if cls is not Invalid]


@with_each(RAISED, lambda error: str(error.code))
def test_an_error_in_a_reply_comes_out_as_what_it_was(error: BanksideError) -> None:
    sent = encode([Reply(id="c", to="m", error=WireError.of(error))])

    told = decode_replies(sent)[0].error
    assert told is not None
    again = told.to_error()

    assert type(again) is type(error)
    assert (again.detail, again.extra, again.headers) == ("why", {"k": 1}, error.headers)


def test_a_refused_request_keeps_every_one_of_its_errors() -> None:
    errors = [{"loc": ["body", "ein"], "msg": "m", "type": "value_error", "ctx": {"le": 1}}]

    again = WireError.of(Invalid(errors)).to_error()

    assert isinstance(again, Invalid)
    assert again.errors == errors


def test_a_code_of_a_newer_service_is_an_internal_error_here() -> None:
    assert type(WireError("invented_tomorrow", "why").to_error()) is InternalError


def test_detail_is_the_docstring_unless_a_better_one_is_given() -> None:
    assert Unavailable().detail.startswith("The service is not available")
    assert Unavailable("Back at noon.").detail == "Back at noon."
