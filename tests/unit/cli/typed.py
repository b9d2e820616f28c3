"""`bankside` with the key of a caller, as it is typed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.support.command_line import Finished, run_bankside
from tests.support.launching import Launch, forked
from tests.unit.client.answering import KEY


async def bankside(
    *arguments: str,
    base_url: str = "http://127.0.0.1:1",
    folder: Path | None = None,
    stdin: bytes = b"",
    output: str | None = None,
    launch: Launch = forked,
    **environment: str,
) -> Finished:
    return await run_bankside(
        arguments,
        {
            **os.environ,
            "USER": "tester",
            "BANKSIDE_BASE_URL": base_url,
            "BANKSIDE_SUBSCRIPTION_KEY": KEY.subscription_key,
            "BANKSIDE_SECRET": KEY.secret,
            **environment,
        },
        folder=folder,
        stdin=stdin,
        output=output,
        launch=launch,
    )


def operator_at(url: str) -> dict[str, Any]:
    return {
        "BANKSIDE_OPERATOR_URL": url,
        "BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": KEY.subscription_key,
        "BANKSIDE_OPERATOR_SECRET": KEY.secret,
    }
