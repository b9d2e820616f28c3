from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import pytest

from services.provider_sandbox.operations import Refusal
from services.provider_sandbox.statements.links import Links

STATEMENT = "01a1fb4a-e155-7788-abf7-25f553bf2f4a"
LINKS = Links("http://bank.test/", "a token of the provider", 900)


def parts(url: str) -> tuple[str, str, str]:
    path, query = urlsplit(url).path, parse_qs(urlsplit(url).query)
    statement_id = path.removeprefix("/documents/statements/").removesuffix(".pdf")
    return statement_id, query["expires"][0], query["signature"][0]


def test_a_link_that_was_given_out_is_good_until_it_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = time.time()
    link = LINKS.to_statement(STATEMENT)

    assert link.url.startswith(f"http://bank.test/documents/statements/{STATEMENT}.pdf?")
    assert link.expires_at.timestamp() == int(parts(link.url)[1])
    assert 898 < link.expires_at.timestamp() - now <= 901
    LINKS.check(*parts(link.url))
    Links("http://elsewhere", "a token of the provider", 1).check(*parts(link.url))

    monkeypatch.setattr(time, "time", link.expires_at.timestamp)
    with pytest.raises(Refusal, match="expired"):
        LINKS.check(*parts(link.url))


@pytest.mark.parametrize("wrong", ["statement", "expires", "signature", "empty", "key", "letters"])
def test_a_link_that_was_altered_is_refused(wrong: str) -> None:
    statement_id, expires, signature = parts(LINKS.to_statement(STATEMENT).url)
    links = LINKS
    match wrong:
        case "statement":
            statement_id = statement_id[:-1] + "b"
        case "expires":
            expires = str(int(expires) + 1)
        case "signature":
            signature = ("0" if signature[0] != "0" else "1") + signature[1:]
        case "empty":
            expires = signature = ""
        case "letters":
            signature = "é" * 64
        case _:
            links = Links("http://bank.test", "another token", 900)

    with pytest.raises(Refusal, match="invalid_signature") as refused:
        links.check(statement_id, expires, signature)

    assert refused.value.status == 403
