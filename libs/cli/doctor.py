"""`bankside doctor`: what would keep services from starting or working, a line for each finding with what to do."""

from __future__ import annotations

import asyncio
import difflib
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import asdict, dataclass

from libs.cli import examinations
from libs.cli.decisions import Flag
from libs.cli.output import console, print_json
from libs.cli.services import settings_of_services
from libs.client.errors import OperatorError
from libs.gathering import gather_or_cancel
from libs.runtime.listening_settings import ListeningSettings
from libs.runtime.provider_settings import ProviderSettings
from libs.runtime.service_settings import MessagingSettings
from libs.runtime.settings import ProcessSettings, ServiceSettings, names_of
from libs.secret_sources import is_set

OF_THE_COMMAND_LINE = "BANKSIDE_OPERATOR_SECRET"
"""The secret of the operator who calls `bankside`. The console's `operator_secret` can have this name, too, so that it
does not show that a console is here.
"""

OF_DEPLOYMENTS = ("OWNER_", "AMQP_PASSWORD", "DATABASE_PASSWORD", "CPUS")
"""How the names of variables that begin with a service's own prefix go on, and that are no settings: migrations,
deploy/postgres, deploy/rabbitmq and compose read them.
"""


@dataclass(frozen=True)
class Finding:
    service: str
    subject: str
    """settings, certificate, database, broker or providers."""
    what_to_do: str


def doctor(*services: str, production: Flag = False, json: Flag = False) -> int:
    """Look at the settings of services, and at the servers that they name, with the environment that is here.

    Nothing is changed. Ends with 0 when nothing was found, else with 1.

    Such as `bankside doctor payments --production`.

    Args:
        services: Which services; without, those whose login is in the environment.
        production: Say what the production profile refuses, also under another one.
        json: Print one JSON document.
    """
    wanted = _chosen(services)

    async def run() -> list[Finding]:
        examined = await gather_or_cancel(
            (_examined(settings, production=production) for settings in wanted.values()),
            name="examine",
        )
        return list(itertools.chain.from_iterable(examined))

    found = [*_mistyped(wanted.values()), *asyncio.run(run())]
    if production or any(_is_production(kind) for kind in wanted.values()):
        found += _shared(wanted.values())
    if json:
        print_json({"services": list(wanted), "findings": [asdict(finding) for finding in found]})
    else:
        out = console()
        for finding in found:
            line = f"{finding.service}  {finding.subject}  {finding.what_to_do}"
            out.print(line, markup=False)
        if not found:
            out.print(f"Nothing to do for {', '.join(wanted)}.")
    return 1 if found else 0


def _chosen(names: tuple[str, ...]) -> dict[str, type[ProcessSettings]]:
    known = settings_of_services()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise OperatorError(f"There is no service {unknown[0]!r}; there are: {', '.join(known)}.")
    chosen = names or [name for name, kind in known.items() if _is_here(kind)]
    if not chosen:
        raise OperatorError(
            "No service's settings are here: start this with the environment of one, or name one."
        )
    return {name: known[name] for name in chosen}


def _is_here(kind: type[ProcessSettings]) -> bool:
    """Whether the environment is that of the service."""
    variables = names_of(kind.model_fields[kind.identified_by])
    return any(is_set(name) for name in variables if name != OF_THE_COMMAND_LINE)


def _mistyped(chosen: Iterable[type[ProcessSettings]]) -> Iterator[Finding]:
    """Variables with the prefix of a service that set nothing: a limit of wires is not set by a mistyped name."""
    known = set[str]().union(*(kind.variables() for kind in settings_of_services().values()))
    for kind in chosen:
        if kind.simulates_providers:
            continue
        prefix = names_of(kind.model_fields["profile"])[0].removesuffix("PROFILE")
        no_setting = tuple(f"{prefix}{rest}" for rest in OF_DEPLOYMENTS)
        for name in sorted(os.environ.keys() - known):
            if name.startswith(prefix) and not name.startswith(no_setting):
                nearest = difflib.get_close_matches(name, known, n=1)
                hint = f"; the nearest is {nearest[0]}" if nearest else ""
                yield Finding(
                    kind.service, "settings", f"unset {name}: no setting has this name{hint}."
                )


def _shared(chosen: Iterable[type[ProcessSettings]]) -> Iterator[Finding]:
    """Secrets that production wants one service alone to have. Services say by themselves what they use twice."""
    owners: dict[str, tuple[type[ProcessSettings], str]] = {}
    for kind in chosen:
        settings, _ = kind.examine()
        secrets = settings.random_secrets() if settings is not None else {}
        for name, secret in secrets.items():
            # Each two that exchange messages share a ring, and a provider knows the tokens of its callers.
            if name.endswith("_KEYS") and not name.endswith(("_STORAGE_KEYS", "_LOOKUP_KEYS")):
                continue
            # The gateway registers the console's key.
            if name.startswith("BANKSIDE_GATEWAY_CONSOLE_"):
                continue
            owner, other = owners.setdefault(secret, (kind, name))
            if owner is not kind and not (kind.simulates_providers or owner.simulates_providers):
                yield Finding(
                    kind.service, "settings", f"set {name} and {other} to secrets that differ."
                )


def _is_production(kind: type[ProcessSettings]) -> bool:
    settings, _ = kind.examine()
    return settings is not None and settings.is_production


async def _examined(kind: type[ProcessSettings], *, production: bool) -> list[Finding]:
    settings, problems = kind.examine(for_production=production)
    found = [Finding(kind.service, "settings", problem) for problem in problems]
    if settings is None:
        return found
    production = production or settings.is_production
    found += [Finding(kind.service, "settings", problem) for problem in settings.problems()]
    looks: dict[str, AsyncIterator[str]] = {}
    if isinstance(settings, ListeningSettings):
        looks["certificate"] = examinations.certificate(settings)
    if isinstance(settings, ServiceSettings):
        looks["database"] = examinations.database(settings, production=production)
    if isinstance(settings, MessagingSettings):
        looks["broker"] = examinations.broker(settings)
    if isinstance(settings, ProviderSettings):
        looks["providers"] = examinations.providers(settings, production=production)
    for subject, look in looks.items():
        try:
            found += [Finding(kind.service, subject, sentence) async for sentence in look]
        except Exception as error:  # the other findings are told all the same
            found.append(Finding(kind.service, subject, _not_examined(subject, error)))
    return found


def _not_examined(subject: str, error: Exception) -> str:
    """Without the error's message, which may have a part of a URL."""
    return (
        f"look at the settings of the {subject}: what they name could not be looked at to its end"
        f" ({type(error).__name__})."
    )
