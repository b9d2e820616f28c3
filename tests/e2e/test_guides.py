"""The code of the guides is run, as an integrator would who types it in."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from deploy.local.banks import SANDBOX
from libs.specs.reference.guides import FOLDER
from tests.support.client_packages import blocks, new_customer, run
from tests.support.live import Live
from tests.support.stack import BANK

PROGRAMS = {
    "python run": (sys.executable, "-c"),
    "javascript run": ("node", "--input-type=module", "--eval"),
    "sh run": ("bash", "-euo", "pipefail", "-c"),
}
GUIDES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
RUNNING = [
    (guide, language)
    for guide in GUIDES
    for language in PROGRAMS
    if blocks(FOLDER / f"{guide}.md", language)
]
VERIFIED = """
import sys

given = json.load(sys.stdin)
print(verify(given["secret"], given["headers"], given["body"].encode())["type"])
try:
    verify(given["secret"], given["headers"], given["body"].encode() + b" ")
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(("guide", "language"), RUNNING)
async def test_the_code_of_a_guide_runs(
    live: Live, tmp_path: Path, guide: str, language: str
) -> None:
    program, *options = PROGRAMS[language]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program}")
    if guide == "testing" and BANK != SANDBOX:
        pytest.skip("only the simulated bank can be asked to make things happen")
    shown = blocks(FOLDER / f"{guide}.md", language)
    verifying = [block for block in shown if "def verify" in block]

    async with new_customer(live) as customer:
        accounts = await live.partner.get("/partner/reseller/accounts")
        settings = customer.settings | {
            "CALLBACK_URL": customer.endpoint.url(),
            "BANKSIDE_SANDBOX_URL": live.stack.sandbox_url,
            "ACCOUNT_ID": accounts.data["accounts"][0]["id"],
        }
        code = "\n".join(shown)
        if verifying:
            code += "\nprint(secret)"
        said = await run(program, *options, code, folder=tmp_path, **settings)
        if verifying:
            delivery = await customer.delivery(said.splitlines()[-1])
            imports = "import hashlib, hmac, json, time\nfrom decimal import Decimal\n"
            receiving = imports + "\n".join(verifying) + VERIFIED
            said = await run(program, *options, receiving, folder=tmp_path, given=delivery)
            assert said.splitlines() == [
                "webhook_subscription.test",
                "The delivery was not signed with this secret.",
            ]


def test_no_two_documents_use_the_same_idempotency_key() -> None:
    """A reader tries them one after another, with keys of the same customer."""
    libraries = [
        FOLDER.parents[1] / client / "README.md"
        for client in ("python_client", "typescript_client")
    ]

    used = Counter(
        key
        for document in (*FOLDER.glob("*.md"), *libraries)
        for key in set(re.findall(r'(?i)idempotency_?key[=:] ?"([^"]+)"', document.read_text()))
    )

    assert len(used) >= 5
    assert [key for key, times in used.items() if times > 1] == []


@pytest.mark.parametrize("guide", GUIDES)
def test_the_json_of_a_guide_is_json(guide: str) -> None:
    for block in blocks(FOLDER / f"{guide}.md", "json"):
        json.loads(block)
