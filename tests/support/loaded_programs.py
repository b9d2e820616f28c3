"""Loading a program, with what each process of it would load and make at its start, before any of them is forked."""

from __future__ import annotations

import contextlib
import functools
import importlib
import runpy
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web
from pydantic import SecretStr

from libs.cli.services import settings_of_services
from libs.contracts.gateway_table import OPERATOR_OPERATIONS
from libs.contracts.model import build_validators
from libs.contracts.operation import Operation
from libs.contracts.table import PUBLIC_OPERATIONS, operations_of
from libs.messaging.replier import Replier
from libs.providers.companies import Company, NoAdapters, composition
from libs.tls import client_context
from tests.support.compiling import compile_before_forking

OF_TESTS = {
    "tests.integration.replica": operations_of("onboarding"),
    "tests.support.increase_bank": (),
}
"""Programs of tests alone that are loaded before they are forked, each with the operations that it takes."""


def load(module: str) -> None:
    """Load the program; one that is not known here is left to its processes."""
    if module.startswith("services."):
        _load_service(module)
    elif module == "libs.cli":
        _load_commands()
    elif module in OF_TESTS:
        runpy.run_module(module)
        _build_validators(OF_TESTS[module])
        _prepare_database()


def _load_commands() -> None:
    """All of `bankside`, and the settings of all services, which take `bankside doctor` a third of a second."""
    from libs.cli.cli import COMMANDS  # noqa: PLC0415 - loaded already, and not by every process that starts others

    for _, place, _ in COMMANDS:
        importlib.import_module(place.partition(":")[0])
    settings_of_services()


def _load_service(module: str) -> None:
    """Load the service with its providers' adapters, and make what each process of it would make after it was forked:
    its settings' class, the validators of its operations, the patterns of its routes and of its callers' queues, its
    database's statements, and the authorities of TLS.
    """
    runpy.run_module(module)  # not as `__main__`: it imports what it runs, and runs nothing
    importlib.import_module(f"{module}.settings").Settings.complete()
    for company in Company:
        with contextlib.suppress(NoAdapters):
            composition(f"{module}.adapters", company)
    service = module.removeprefix("services.")
    served = (*PUBLIC_OPERATIONS, *OPERATOR_OPERATIONS)
    _build_validators(served if service == "gateway" else operations_of(service))
    Replier(service)
    _prepare_database()
    match service:
        case "gateway":
            _know_routes(row.path for row in served if row.path)
        case "console":
            client_context()
            _know_routes(_pages_of_the_console())
        case "provider_sandbox":
            _compose_the_sandbox()
        case "webhook_dispatcher":
            _read_authorities_once()


def _build_validators(rows: Iterable[Operation]) -> None:
    for row in rows:
        build_validators((row.command, row.reply))


def _prepare_database() -> None:
    """Compile the statements of a program that has some."""
    if "libs.persistence.engine" in sys.modules:
        compile_before_forking()


def _know_routes(paths: Iterable[str]) -> None:
    """Have `re` keep the patterns that aiohttp makes of them."""
    router = web.UrlDispatcher()
    for path in paths:
        router.add_resource(path)


def _pages_of_the_console() -> Iterator[str]:
    from services.console.application import SUBJECTS  # noqa: PLC0415 - no other program needs it
    from services.console.sessions import CSV  # noqa: PLC0415

    for _, group in SUBJECTS:
        for subject in group:
            yield from (subject.page.path, f"{subject.page.path}{CSV}")
            yield from (detail.path for detail in subject.details)
            yield from (action.path for action in subject.actions())


def _compose_the_sandbox() -> None:
    """For the patterns of its routes and the series of its metrics, of which it has many."""
    from services.provider_sandbox.app import application  # noqa: PLC0415 - no other program needs it
    from services.provider_sandbox.settings import Settings  # noqa: PLC0415

    required = [name for name, field in Settings.model_fields.items() if field.is_required()]
    secrets: dict[str, Any] = {name: SecretStr(name) for name in required}
    no_database: Any = None
    application(no_database, Settings.model_construct(**secrets))


def _read_authorities_once() -> None:
    from services.webhook_dispatcher.adapters import dialing  # noqa: PLC0415 - no other program needs it

    dialing.system_context = functools.cache(dialing.system_context)
    dialing.system_context()
