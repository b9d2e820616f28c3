"""Secrets as files, private in production, and from programs: read like variables, never shown."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import pytest

from libs import secret_sources
from services.payments.settings import Settings

NEEDED = {
    "BANKSIDE_PAYMENTS_DATABASE_URL": "postgresql://payments@localhost/bankside",
    "BANKSIDE_PAYMENTS_AMQP_URL": "amqp://payments@localhost/",
    "BANKSIDE_CORE_URL": "http://localhost/core",
}
TOKEN, FILE = "BANKSIDE_PAYMENTS_CORE_TOKEN", "BANKSIDE_PAYMENTS_CORE_TOKEN_FILE"
COMMAND = "BANKSIDE_PAYMENTS_CORE_TOKEN_COMMAND"
CANARY = "canary-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("BANKSIDE_")]:
        monkeypatch.delenv(name)
    for name, value in NEEDED.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a secret, that the settings name."""
    path = tmp_path / "token"
    path.write_text(f"{CANARY}\n")
    path.chmod(0o600)
    monkeypatch.setenv(FILE, str(path))
    return path


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence with which the settings are refused."""
    with pytest.raises(SystemExit) as ended:
        Settings.load()
    told = capsys.readouterr().err
    assert ended.value.code == 78
    assert len(told.splitlines()) == 1
    assert CANARY not in told
    return told


def token(settings: Settings) -> str:
    [login] = settings.provider_logins()
    return login.secret


@pytest.mark.usefixtures("file")
def test_a_secret_is_read_from_its_file_without_the_line_break() -> None:
    assert token(Settings.load()) == CANARY


def test_a_file_for_the_service_wins_over_a_value_for_all(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_CORE_TOKEN", "of all")

    of_its_own = token(Settings.load())
    monkeypatch.delenv(FILE)
    monkeypatch.setenv(TOKEN, "its own")
    monkeypatch.delenv("BANKSIDE_CORE_TOKEN")
    monkeypatch.setenv("BANKSIDE_CORE_TOKEN_FILE", str(file))

    assert of_its_own == CANARY
    assert token(Settings.load()) == "its own"


def test_an_empty_variable_of_the_service_leaves_the_one_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(TOKEN, "")
    monkeypatch.setenv("BANKSIDE_CORE_TOKEN", "of all")

    assert token(Settings.load()) == "of all"


@pytest.mark.usefixtures("file")
def test_a_secret_that_is_given_in_both_ways_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TOKEN, "a value")

    told = refusal(capsys)

    assert f"{TOKEN} and {FILE} are set at once" in told


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "has no text in UTF-8"),
        (b"c" * 65_537, "has more than 65536 bytes"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_without_a_usable_secret_is_refused(
    file: Path, capsys: pytest.CaptureFixture[str], contents: bytes | None, problem: str
) -> None:
    if contents is None:
        file.unlink()
    else:
        file.write_bytes(contents)

    assert refusal(capsys) == f"payments: {FILE}: {file} {problem}.\n"


def test_what_is_not_a_file_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.unlink()
    os.mkfifo(file)

    assert "is not a file" in refusal(capsys)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_production_refuses_a_secret_file_that_others_can_read(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mode: int,
) -> None:
    file.chmod(mode)
    anywhere_else = Settings.load()
    monkeypatch.setenv("BANKSIDE_PROFILE", "production")

    told = refusal(capsys)

    assert token(anywhere_else) == CANARY
    assert "can be read by other users: chmod 600 it" in told


def test_production_takes_a_file_of_another_user_that_a_group_of_ours_reads(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKSIDE_PROFILE", "production")
    private = Settings.load()
    file.chmod(0o440)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)

    mounted = Settings.load()

    assert {token(private), token(mounted)} == {CANARY}


def printing(output: str) -> str:
    """A command that writes the text, and to its standard error too."""
    code = f"import sys; sys.stderr.write({output!r}); print({output!r}, end='')"
    return shlex.join([sys.executable, "-c", code])


def test_a_secret_is_what_a_program_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND, printing(f"{CANARY}\n"))

    assert token(Settings.load()) == CANARY


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program --key 1", "no-such-program cannot be run: No such file or directory"),
        ("false --key 1", "false ended with status 1: run it by hand to see why"),
        ("true", "true is empty"),
        ("'unfinished", "it is no program with arguments: see its quotes"),
        ("sleep 60", "sleep has not ended after 0.05 s"),
    ],
)
def test_a_program_without_a_usable_secret_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    problem: str,
) -> None:
    monkeypatch.setattr(secret_sources, "COMMAND_SECONDS", 0.05 if "sleep" in command else 60)
    monkeypatch.setenv(COMMAND, command)

    assert refusal(capsys) == f"payments: {COMMAND}: {problem}.\n"


def test_a_program_that_fails_tells_nothing_of_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMMAND, f"sh -c 'echo {CANARY} >&2; echo {CANARY}; exit 3'")

    assert "sh ended with status 3" in refusal(capsys)


@pytest.mark.usefixtures("file")
def test_a_file_and_a_program_at_once_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(COMMAND, printing(CANARY))

    assert f"{FILE} and {COMMAND} are set at once" in refusal(capsys)
