"""Clients that generators make of the document are whole, have types, and are named as a caller would name them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.local.environment import ROOT
from deploy.local.node import PACKAGE, find_typescript
from libs.contracts.events import EVENT_TYPES
from libs.contracts.exact_json import encode
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.operation import Operation
from libs.contracts.table import PUBLIC_OPERATIONS
from tests.support.client_packages import NODE_FOR_A_FEW_SECONDS
from tests.support.documents import openapi_document, operator_document
from tests.support.pace import pace

PACKAGE_NAME = "generated_client"
WAIT_SECONDS = 120
MYPY_CACHE = ROOT / ".tools" / "mypy-generated"
"""Of the run before, whose generated client has the same relative paths."""
GENERATE = """
import copy
import gc
import json
import sys

from openapi_python_client.cli import app
from openapi_python_client.parser import openapi

gc.disable()  # it took a sixth of the time
openapi.deepcopy = copy.copy  # of each operation, whose original is not used again: half of the time
for arguments in json.loads(sys.argv[1]):
    if app(arguments, standalone_mode=False):
        sys.exit(f"{arguments}: has failed")
"""


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS * pace(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@dataclass(frozen=True)
class PythonClients:
    """Packages of openapi-python-client."""

    callers: Path
    operators: Path


@pytest.fixture(scope="module")
def python_clients(tmp_path_factory: pytest.TempPathFactory) -> PythonClients:
    """Both of one process: it loads the generator once. A schema or operation that it leaves out fails the test."""
    commands, made = [], []
    for document in (openapi_document(), operator_document()):
        folder = tmp_path_factory.mktemp("python")
        source, settings = folder / "openapi.json", folder / "settings.json"
        source.write_bytes(encode(document))
        settings.write_text(json.dumps({"post_hooks": [], "package_name_override": PACKAGE_NAME}))
        made.append(folder / PACKAGE_NAME)
        commands.append(
            (
                *("generate", "--fail-on-warning", "--meta", "none"),
                *("--path", str(source), "--config", str(settings)),
                *("--output-path", str(made[-1])),
            )
        )
    run(sys.executable, "-c", GENERATE, json.dumps(commands), cwd=tmp_path_factory.getbasetemp())
    return PythonClients(*made)


@pytest.fixture
def python_client(python_clients: PythonClients) -> Path:
    return python_clients.callers


def operations_in(made: Path) -> set[str]:
    return {file.stem for file in made.glob("api/*/*.py")} - {"__init__"}


def modules_of(rows: Iterable[Operation]) -> set[str]:
    """The names of modules: `send_wire` of `sendWire`."""
    return {re.sub(r"([A-Z])", r"_\1", row.operation_id).lower() for row in rows}


def test_a_python_client_has_every_operation_under_its_id(python_client: Path) -> None:
    assert operations_in(python_client) == modules_of(PUBLIC_OPERATIONS)


def test_a_python_client_for_operators_has_every_operation(
    python_clients: PythonClients,
) -> None:
    assert operations_in(python_clients.operators) == modules_of(OPERATOR_OPERATIONS)


def test_names_in_a_python_client_say_what_things_are(python_client: Path) -> None:
    models = {file.stem: file.read_text() for file in python_client.glob("models/*.py")}
    assert not [name for name in models if re.search(r"response_\d|_type_\d|_item$", name)]
    assert "VALUE_" not in "".join(models.values())
    assert {"wire_envelope", "wire_list_envelope", "event_filter", "address"} <= models.keys()


def test_the_types_of_a_python_client_are_right(python_client: Path) -> None:
    run(
        *(sys.executable, "-m", "mypy", "--config-file", "", "--follow-imports", "silent"),
        *("--cache-dir", str(MYPY_CACHE)),
        *("-p", f"{PACKAGE_NAME}.api", "-p", f"{PACKAGE_NAME}.models"),
        cwd=python_client.parent,
    )


def test_typescript_types_are_made_and_compile(tmp_path: Path) -> None:
    programs = find_typescript()
    if programs is None:
        pytest.skip(
            f"no Node with its packages: `make test` installs them, `apt-get install {PACKAGE}` Node"
        )
    (tmp_path / "openapi.json").write_bytes(encode(openapi_document()))
    (tmp_path / "use.ts").write_text(USE)

    run(str(programs / "openapi-typescript"), "openapi.json", "-o", "api.d.ts", cwd=tmp_path)
    # Without the types of a browser, which take half of the time.
    strict = ("--noEmit", "--strict", "--lib", "es2022")
    compile_ = (*NODE_FOR_A_FEW_SECONDS, str(programs / "tsc"))
    run(*compile_, *strict, "use.ts", "api.d.ts", cwd=tmp_path)

    types = (tmp_path / "api.d.ts").read_text()
    for row in PUBLIC_OPERATIONS:
        assert f" {row.operation_id}: {{" in types
    for name in EVENT_TYPES:
        assert f'"{name}"' in types


USE = """
import type { components, operations } from "./api";

type Envelope = operations["sendWire"]["responses"][200]["content"]["application/json"];
type Conflict = operations["sendWire"]["responses"][409]["content"]["application/problem+json"];

export const body: components["schemas"]["SendWire"] = {
  sending_account_id: "acc_1", external_account_id: "ext_1", amount: 12.5, purpose: "Invoice",
};
export const sent = (envelope: Envelope): string => envelope.data.transaction_id;
export function why(problem: Conflict): string {
  return problem.code === "limit_exceeded" ? String(problem.limit) : problem.detail;
}
// @ts-expect-error: the state of a wire is one of a list
export const state: components["schemas"]["WireState"] = "lost";
"""
