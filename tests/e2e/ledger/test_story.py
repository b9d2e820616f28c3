"""`make demo` on a running stack."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from pathlib import Path

from pypdf import PdfReader

from tests.support.live import Live
from tests.support.pace import pace

STORY_SECONDS = 120.0


async def test_the_story_is_told_to_its_end_and_leaves_the_statement(
    live: Live, tmp_path: Path
) -> None:
    local = tmp_path / ".local"
    local.mkdir()
    settings = {
        "BANKSIDE_BASE_URL": live.stack.base_url,
        "BANKSIDE_SANDBOX_URL": live.stack.sandbox_url,
        "BANKSIDE_SUBSCRIPTION_KEY": live.partner.key.subscription_key,
        "BANKSIDE_SECRET": live.partner.key.secret,
    }

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "libs.demo.story"),
        env=os.environ | live.stack.env | settings,
        cwd=tmp_path,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(STORY_SECONDS * pace()):
        output, errors = await process.communicate()

    story = output.decode()
    assert process.returncode == 0, story + errors.decode()
    (document,) = (local / "demo").iterdir()
    assert str(document) in story
    first_page = PdfReader(io.BytesIO(document.read_bytes())).pages[0].extract_text()
    assert "Casco Bay Cooperative" in first_page
    assert live.partner.key.secret not in story
