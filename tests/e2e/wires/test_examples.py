"""The examples of the reference are run, as an integrator would who copies them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from functools import cache

import pytest

from libs.specs.reference.operations import Call, Reference
from tests.e2e.wires.hands import Sender
from tests.support.documents import openapi_document
from tests.support.pace import pace

RUN_SECONDS = 30.0
PROGRAMS = {
    "curl": ("bash", "-euo", "pipefail", "-c"),
    "Python": ("python3", "-c"),
    "Node": ("node", "--input-type=module", "--eval"),
}


@cache
def calls() -> dict[str, Call]:
    reference = Reference(openapi_document())
    return {
        call.operation_id: call
        for resource in reference.resources
        for operation in resource.operations
        for call in operation.calls
    }


async def output_of(sender: Sender, operation_id: str, language: str) -> str:
    """What the example prints with the sender's key, and its accounts in place of those of the document."""
    program = PROGRAMS[language]
    if shutil.which(program[0]) is None or (language == "curl" and shutil.which("curl") is None):
        pytest.skip(f"there is no program for examples in {language}")
    (code,) = (s.code for s in calls()[operation_id].samples if s.name == language)
    for example, real in (
        ("acc_0000000001", sender.account_id),
        ("ext_0000000001", sender.external_account_id),
    ):
        code = code.replace(example, real)
    process = await asyncio.create_subprocess_exec(
        *program,
        code,
        stdout=asyncio.subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"],
            "BANKSIDE_BASE_URL": sender.live.stack.base_url,
            "BANKSIDE_SUBSCRIPTION_KEY": sender.api.key.subscription_key,
            "BANKSIDE_SECRET": sender.api.key.secret,
        },
    )
    async with asyncio.timeout(RUN_SECONDS * pace()):
        printed, _ = await process.communicate()
    assert process.returncode == 0
    return printed.decode()


@pytest.mark.parametrize("language", PROGRAMS)
async def test_an_example_with_a_body_sends_a_wire(sender: Sender, language: str) -> None:
    printed = await output_of(sender, "sendWire", language)

    answer = json.loads(printed[printed.index("{") :])
    assert answer["data"]["amount"] == 1250.75
    assert (await sender.wire(answer["data"]["transaction_id"]))["amount"] == 1250.75


@pytest.mark.parametrize("language", PROGRAMS)
async def test_an_example_without_a_body_reads(sender: Sender, language: str) -> None:
    printed = await output_of(sender, "listTransactions", language)

    assert json.loads(printed[printed.index("{") :])["message"]
