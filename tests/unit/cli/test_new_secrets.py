"""Secrets of new keys, which are shown once, where they cannot be shown or saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.typed import bankside, operator_at
from tests.unit.client.answering import gateway, success

pytestmark = pytest.mark.usefixtures("nowhere")

FULL = "/dev/full"

MADE: dict[str, Any] = {
    "subscription_key": "sub_1",
    "secret": "shown-once",
    "tenant": "acme",
    "family": "partner",
}


@pytest.mark.parametrize("json_too", [(), ("--json",)])
async def test_a_secret_that_could_not_be_shown_or_saved_is_told_as_lost(
    json_too: tuple[str, ...],
) -> None:
    creating = ("keys", "create", "--family", "partner", "--tenant", "acme", *json_too)
    async with gateway(success(MADE)) as server:
        done = await bankside(*creating, output=FULL, **operator_at(server.base_url))

    assert done.status == 3
    assert done.err.startswith("bankside: The secret of sub_1 could not be shown, and is lost.")
    assert done.err.count("\n") == 1


async def test_a_secret_that_could_not_be_shown_is_saved_all_the_same(tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    creating = ("keys", "create", "--family", "partner", "--tenant", "acme", "--save", "acme")
    async with gateway(success(MADE)) as server:
        done = await bankside(
            *creating, output=FULL, folder=tmp_path, **operator_at(server.base_url)
        )

    assert done.status == 3
    assert "Standard output cannot be written: No space left on device" in done.err
    assert "shown-once" in (tmp_path / ".local" / "keys" / "acme.json").read_text()


@pytest.mark.parametrize("json_too", [(), ("--json",)])
@pytest.mark.parametrize(
    ("output", "says"),
    [
        (None, "The secret of sub_1 is shown above and saved nowhere: keep it. The key could not"),
        (FULL, "The secret of sub_1 could not be shown, and is lost."),
    ],
    ids=["shown", "not shown"],
)
async def test_a_secret_that_could_not_be_saved_is_told_with_its_key(
    tmp_path: Path, output: str | None, says: str, json_too: tuple[str, ...]
) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local" / "keys").touch()  # where the folder of saved keys belongs
    creating = ("keys", "create", "--family", "partner", "--tenant", "acme", "--save", "acme")
    async with gateway(success(MADE)) as server:
        done = await bankside(
            *(*creating, *json_too),
            output=output,
            folder=tmp_path,
            **operator_at(server.base_url),
        )

    assert done.status == 3
    assert done.err.startswith(f"bankside: {says}")
    assert ("shown-once" in done.out) is (output is None)
