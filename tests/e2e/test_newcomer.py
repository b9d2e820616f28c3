"""What the README promises: the demo, a signed call, the same in plain Python, keys of one's own."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from pypdf import PdfReader

from deploy.local.banks import bank_addresses
from tests.support.command_line import run_program
from tests.support.live import Live
from tests.support.operators import new_operator
from tests.support.pace import pace

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def checkout(live: Live, tmp_path: Path) -> Path:
    """A folder as `make up` leaves it."""
    key = await live.deployment.key("newcomer")
    local = tmp_path / ".local"
    local.mkdir()
    partner = {"subscription_key": key.subscription_key, "secret": key.secret}
    admin = await new_operator(live.stack.environment)
    operator = {"subscription_key": admin.subscription_key, "secret": admin.secret}
    (local / "credentials.json").write_text(
        json.dumps(
            {
                "base_url": live.stack.base_url,
                "operator_url": live.stack.operator_url,
                **bank_addresses(live.stack.env),
                "operator": operator,
                "partner": partner,
            }
        )
    )
    settings = live.stack.env | {"BANKSIDE_BASE_URL": live.stack.base_url}
    (local / "stack.env").write_text("".join(f"{n}='{v}'\n" for n, v in settings.items()))
    return tmp_path


async def run(folder: Path, *command: str) -> str:
    """Standard output of a command that succeeds and says nothing on standard error."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={n: v for n, v in os.environ.items() if not n.startswith("BANKSIDE_")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60 * pace()):
        output, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, ""), output.decode()
    return output.decode()


async def run_forked(folder: Path, module: str, *arguments: str) -> str:
    """Likewise, of `python -m MODULE`, without the second that a new interpreter takes to load it."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("BANKSIDE_")}
    done = await run_program(module, arguments, environment, folder=folder)
    assert (done.status, done.err) == (0, ""), done.out
    return done.out


async def test_the_demo_plays_to_its_end_leaves_the_statement_and_can_be_played_again(
    live: Live, checkout: Path
) -> None:
    key = await live.deployment.key("newcomer")
    story = "libs.demo.story"
    for played in (run(checkout, sys.executable, "-m", story), run_forked(checkout, story)):
        shown = await played

        assert "Everything is as it should be." in shown
        told = [line.split()[0] for line in shown.splitlines() if line.endswith("  verified")]
        assert set(told) == {"wire.created", "wire.submitted", "wire.completed"}
        assert "\x1b" not in shown
        assert key.secret not in shown
        saved = (checkout / ".local" / "demo").iterdir()
        [statement] = [document for document in saved if str(document) in shown]
        first_page = PdfReader(io.BytesIO(statement.read_bytes())).pages[0].extract_text()
        assert "Casco Bay Cooperative" in first_page


async def test_the_python_of_the_readme_is_a_signed_call(checkout: Path) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert code is not None

    shown = await run(checkout, sys.executable, "-W", "ignore", "-c", code[1])

    assert "'message': 'Accounts found'" in shown


async def test_a_key_that_was_saved_under_a_name_signs_calls(checkout: Path) -> None:
    made = json.loads(
        await run_forked(
            *(checkout, "libs.cli"),
            *("keys", "create", "--family", "partner", "--tenant", "newcomer"),
            *("--save", "mine", "--json"),
        )
    )
    call = ("call", "GET", "/partner/reseller/customers", "--key")

    shown = await run_forked(checkout, "libs.cli", *call, "mine")
    document = json.loads(
        await run_forked(checkout, "libs.cli", *call, made["subscription_key"], "--json")
    )

    assert shown.startswith("200 OK")
    assert document["status"] == 200
    assert document["body"]["message"] == "Customers found"


async def test_dead_letters_are_looked_for_at_the_stacks_broker(checkout: Path) -> None:
    listed = json.loads(await run_forked(checkout, "libs.cli", "dead", "list", "--json"))

    assert [item["queue"] for item in listed["queues"]] == [
        "onboarding.commands.dead",
        "payments.commands.dead",
        "webhook_dispatcher.commands.dead",
        "webhook_dispatcher.events.dead",
    ]
