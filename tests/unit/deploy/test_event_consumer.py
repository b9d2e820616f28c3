"""The command that makes a user and a queue for a consumer of events."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from deploy.rabbitmq.event_consumer import main


def test_the_password_is_made_once_and_only_its_hash_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    command = ["books", "--types", "wire.*", "account.opened", "--password-file", str(file)]

    assert [main(command), main(command)] == [0, 0]

    password = file.read_text().strip()
    printed = capsys.readouterr().out
    assert password not in printed
    assert file.stat().st_mode & 0o777 == 0o600
    document, end = json.JSONDecoder().raw_decode(printed)
    again, _ = json.JSONDecoder().raw_decode(printed[end:].lstrip())
    for each in (document, again):
        stored = base64.b64decode(each["users"][0]["password_hash"])
        assert hashlib.sha256(stored[:4] + password.encode()).digest() == stored[4:]
    assert [each["routing_key"] for each in document["bindings"]] == ["wire.*", "account.opened"]


@pytest.mark.parametrize(
    ("name", "event_type", "says"),
    [
        ("payments", "wire.*", "not that of a service"),
        ("bankside", "wire.*", "not that of a service"),
        ("a.*", "wire.*", "lower-case letters"),
        ("books", "wires.*", "wires.* is no type of event"),
        ("books", "webhook_subscription.test", "is no type of event that travels"),
    ],
)
def test_a_wrong_argument_gets_a_sentence_and_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, event_type: str, says: str
) -> None:
    file = tmp_path / "password"

    assert main([name, "--types", event_type, "--password-file", str(file)]) == 2

    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.out == ""
    assert not file.exists()


def test_a_short_password_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "password"
    file.write_text("short\n")

    assert main(["books", "--types", "#", "--password-file", str(file)]) == 2

    assert "fewer than 16 characters" in capsys.readouterr().err
