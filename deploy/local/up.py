"""`up`: everything running and ready, or a sentence that says why not."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

import aio_pika

from deploy.local import banks, debian
from deploy.local.down import stop
from deploy.local.keys import ensure_keys
from deploy.local.ports import LOOPBACK, holder_of, is_free
from deploy.local.rabbitmq import find_server, urls_of_services
from deploy.local.services import (
    DATABASE,
    INCREASE_FAKE_PREFIX,
    OPERATOR_PORT,
    OPERATOR_PORT_SETTING,
    OPERATORS_ONLY,
    SERVICES,
    prometheus_targets,
    stack_settings,
    tokens_at_sandbox,
)
from deploy.local.stack import MIGRATION_SECONDS, expected_children, own_postgres, own_rabbitmq
from deploy.local.state import LocalState, Remembered, running
from deploy.rabbitmq.definitions import definitions, users
from libs.client.errors import OperatorError
from libs.client.settings import OF_THE_COMMAND_LINE, PREFIX
from libs.messaging.broker_errors import BROKER_ERRORS
from libs.messaging.connection import encryption_of
from libs.runtime.processes import ProcessIdentity
from libs.runtime.supervision_state import ChildState, SupervisorStatus, end_leftovers
from libs.secret_sources import BadSecret, is_set, read_secret

READY_SECONDS = 120.0
"""For the services, from when they are started."""
PREPARING_SECONDS = READY_SECONDS + MIGRATION_SECONDS
"""For what is before them, which the supervisor limits itself: servers and migrations."""
HOPELESS_RESTARTS = 3
POLL_SECONDS = 0.05
CONNECT_SECONDS = 5.0
NEEDED_BYTES = 600_000_000
LOG_LINES = 15
_TIME = re.compile(r"^[-0-9:T]+Z ")


def up(state: LocalState, wanted_bank: str | None = None) -> None:
    """Start what does not run, wait until all is ready, say where it is. Raises OperatorError."""
    bank = banks.chosen_bank(wanted_bank, state.remembered())
    status = running(state)
    if status is not None and not waiting_for(state, status):
        print("The stack is running already.")
    elif status is not None:
        print("The stack is running already, but not all of it is ready yet.")
        _wait_until_ready(state, state.log("supervisor").stat().st_size, None)
    else:
        _start(state, bank)
    ensure_keys(state)
    _say_where(state)


def _start(state: LocalState, bank: str) -> None:
    _check_disk(state)
    left = end_leftovers(state.supervisor)
    if left:
        print(f"Ended what a stack that was killed had left running: {', '.join(left)}.")
    remembered = (state.remembered() or Remembered.new(bank)).with_usable_ports()
    settings = all_settings(state, remembered, chosen_settings(os.environ))
    check_ports(settings)
    state.remember(remembered)
    state.write_environment(settings)
    targets = prometheus_targets(settings, banks.services_beside(settings))
    state.write_private(state.prometheus_targets, json.dumps(targets))
    log = state.log("supervisor")
    with log.open("ab") as output:
        begin = output.tell()
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "deploy.local", "supervise"],
            cwd=state.root,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        # For it: until its imports are done, `stop` would not find it.
        if process := ProcessIdentity.of(supervisor.pid):
            SupervisorStatus(process, ()).write(state.supervisor)
        _wait_until_ready(state, begin, supervisor)
    except KeyboardInterrupt:
        print("Interrupted: stopping what was started.")
        stop(state)
        raise


def chosen_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings that the operator's environment has for the stack."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(PREFIX) and name not in OF_THE_COMMAND_LINE
    }


def _check_disk(state: LocalState) -> None:
    free = shutil.disk_usage(state.folder).free
    if free < NEEDED_BYTES:
        raise OperatorError(
            f"The disk is nearly full: {free // 1_000_000} MB are free at {state.folder}, and the "
            f"stack needs {NEEDED_BYTES // 1_000_000} MB."
        )


def _port(setting: str, default: int | None, chosen: Mapping[str, str]) -> int:
    """The port that callers use."""
    text = chosen.get(setting, str(default))
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise OperatorError(f"{setting} is not a port number: {text!r}.")
    return int(text)


def check_ports(settings: Mapping[str, str]) -> None:
    """Whether the ports that callers use are free, and differ. Raises OperatorError, which names those that are not."""
    wanted = [
        (service.name, service.port_setting, settings[f"BANKSIDE_{service.prefix}_HOST"])
        for service in banks.services_beside(settings)
        if service.public_port is not None
    ]
    operators = settings["BANKSIDE_GATEWAY_OPERATOR_HOST"]
    wanted.append(("gateway for operators", OPERATOR_PORT_SETTING, operators))
    if banks.has_fake(settings):
        wanted.append((banks.PART, banks.PORT_SETTING, LOOPBACK))
    taken: dict[int, str] = {}
    wrong: dict[str, str] = {}
    for name, setting, host in wanted:
        port = int(settings[setting])
        if port in taken:
            wrong[setting] = f"port {port} of the {_spoken(name)} is that of the {taken[port]}"
        elif not is_free(port, host):
            holder = holder_of(port)
            wrong[setting] = f"port {port} of the {_spoken(name)} cannot be used"
            wrong[setting] += f", {holder} listens on it" if holder else ""
        taken.setdefault(port, _spoken(name))
    if not wrong:
        return
    # Beyond all that were wanted, so that none of the new ones is another's.
    beyond = max(taken) + 100
    others = " ".join(f"{setting}={beyond + n}" for n, setting in enumerate(wrong))
    said = "; ".join(wrong.values())
    raise OperatorError(
        f"{said[0].upper()}{said[1:]}. Free it, or choose another one: `{others} make up`."
    )


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def all_settings(
    state: LocalState,
    remembered: Remembered,
    chosen: Mapping[str, str],
) -> dict[str, str]:
    """All settings of the stack; what the operator's environment says wins. Raises OperatorError."""
    public = [service for service in SERVICES if service.public_port is not None]
    public_ports = {s.name: _port(s.port_setting, s.public_port, chosen) for s in public}
    fake_port = _port(banks.PORT_SETTING, banks.DEFAULT_PORT, chosen)
    try:
        broker = read_secret("BANKSIDE_AMQP_URL", chosen)
    except BadSecret as error:
        raise OperatorError(str(error)) from None
    if broker:
        check_elsewhere(state, remembered, broker, chosen.get("BANKSIDE_AMQP_CA_FILE"))
    else:
        broker = own_rabbitmq(state, remembered, ensure_rabbitmq(state)).url()
    postgres = own_postgres(state, remembered)
    passwords = remembered.secrets.role_passwords
    generated = stack_settings(
        secrets=remembered.secrets,
        database_urls={role: postgres.url(role, pw, DATABASE) for role, pw in passwords.items()},
        amqp_url=broker,
        amqp_urls=urls_of_services(broker, remembered.secrets.amqp_passwords),
        public_ports=public_ports,
        operator_port=_port(OPERATOR_PORT_SETTING, OPERATOR_PORT, chosen),
        admin_ports=remembered.ports,
        hosts=chosen,
    ) | banks.bank_settings(remembered.bank, remembered.secrets, fake_port)
    # The broker's URL is there as it was read, however it was given.
    chosen = {k: v for k, v in chosen.items() if k not in OPERATORS_ONLY}
    if not banks.has_fake(generated):
        chosen = {k: v for k, v in chosen.items() if not k.startswith(INCREASE_FAKE_PREFIX)}
    chosen = {**tokens_at_sandbox(chosen), **chosen}
    return {k: v for k, v in generated.items() if not is_set(k, chosen)} | chosen


def check_elsewhere(
    state: LocalState, remembered: Remembered, broker: str, ca_file: str | None = None
) -> None:
    """Whether a broker of which the operator named the administrator's URL knows the services. Raises OperatorError."""
    _check_reachable(broker)
    parts, passwords = urlsplit(broker), remembered.secrets.amqp_passwords
    vhost = unquote(parts.path.removeprefix("/")) or "/"
    document = {"users": users(passwords), **definitions([vhost])}
    state.write_private(state.broker_definitions, json.dumps(document))
    try:
        asyncio.run(_log_in(urls_of_services(broker, passwords)["gateway"], ca_file))
    except BROKER_ERRORS as error:
        # The passwords in it must stay those of later attempts.
        state.remember(remembered)
        raise OperatorError(
            f"The broker at {parts.hostname} does not let the services in ({type(error).__name__}): import"
            f" {state.broker_definitions} there (`rabbitmqctl import_definitions FILE`), then `make up`"
            " again."
        ) from None


async def _log_in(url: str, ca_file: str | None) -> None:
    async with asyncio.timeout(CONNECT_SECONDS):
        connection = await aio_pika.connect(url, ssl_context=encryption_of(url, ca_file))
        await connection.close()


def _check_reachable(broker: str) -> None:
    url = urlsplit(broker)
    port = url.port or (5671 if url.scheme == "amqps" else 5672)
    try:
        socket.create_connection((url.hostname or "", port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise OperatorError(
            f"No broker answers at {url.hostname}:{port}, which BANKSIDE_AMQP_URL names: "
            f"{error.strerror or error}."
        ) from None


def ensure_rabbitmq(state: LocalState) -> Path:
    """RabbitMQ's server script, after installing the system's package when there is none. Raises OperatorError."""
    server = find_server()
    if server is not None:
        return server
    print("RabbitMQ is not installed: installing the system's package (once) ...", flush=True)
    log = state.log("install")
    reason = debian.install("rabbitmq-server", log)
    server = find_server()
    if reason is None and server is not None:
        debian.disable_service("rabbitmq-server", log)
        return server
    raise OperatorError(
        f"RabbitMQ is not installed and could not be: {reason or 'its package brought no server'}. "
        "Install it (`apt-get install rabbitmq-server`), or name a broker with BANKSIDE_AMQP_URL, "
        "or run everything in containers: `deploy/docker/make-env && docker compose up`."
    )


def _wait_until_ready(
    state: LocalState, begin: int, supervisor: subprocess.Popen[bytes] | None
) -> None:
    """Show what the supervisor says from byte `begin` of its log on, until all is ready. Raises OperatorError.

    `supervisor` is given when it was just started: it may still have to write its state.
    """
    began = time.monotonic()
    lines = _Lines(state.log("supervisor"), begin)
    found = running(state) if supervisor is None else None
    services_began: float | None = None
    restarts_before = {child.name: child.restarts for child in found.children} if found else {}
    while True:
        status = running(state)
        for line in lines.fresh():
            print(f"  {time.monotonic() - began:5.1f} s  {line}", flush=True)
        if status is not None and not waiting_for(state, status):
            return
        if status is None and (supervisor is None or supervisor.poll() is not None):
            lines.fresh()
            raise OperatorError(f"The stack ended: {lines.last}")
        if services_began is None and _has_services(status):
            services_began = time.monotonic()
        if services_began is None:
            is_late = time.monotonic() - began > PREPARING_SECONDS
        else:
            is_late = time.monotonic() - services_began > READY_SECONDS
        late = waiting_for(state, status) if status is not None else ["supervisor"]
        hopeless = [
            child.name
            for child in (status.children if status is not None else ())
            if child.name in late
            and child.restarts - restarts_before.get(child.name, 0) >= HOPELESS_RESTARTS
        ]
        if hopeless:
            _give_up(state, hopeless, "keeps dying", is_ours=supervisor is not None)
        if is_late:
            names = late if services_began is not None else ["supervisor"]
            _give_up(state, names, "is not ready", is_ours=supervisor is not None)
        time.sleep(POLL_SECONDS)


def _has_services(status: SupervisorStatus | None) -> bool:
    """Whether the supervisor has come to the services, which it starts last, all at once."""
    names = {child.name for child in status.children} if status is not None else set()
    return not names.isdisjoint(service.name for service in SERVICES)


def _give_up(state: LocalState, names: list[str], why: str, *, is_ours: bool) -> NoReturn:
    """Raise the error of a stack that does not become ready, with the end of a service's log.

    Args:
        is_ours: this command has started the stack, which it stops; one that it found running goes on.
    """
    log = state.log(names[0])
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    last = "\n".join(f"    {line}" for line in lines[-LOG_LINES:])
    if is_ours:
        stop(state)
    then = "the stack is stopped again" if is_ours else "the stack goes on as it is"
    raise OperatorError(f"{names[0]} {why}; {then}. The end of {log}:\n{last}")


class _Lines:
    """What a log gets from now on, without the times at which it got it."""

    def __init__(self, path: Path, begin: int) -> None:
        self._path = path
        self._position = begin
        self.last = "without a word"

    def fresh(self) -> list[str]:
        with self._path.open("rb") as log:
            log.seek(self._position)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        lines = [_TIME.sub("", line) for line in whole.decode(errors="replace").splitlines()]
        self.last = lines[-1] if lines else self.last
        return lines


def waiting_for(state: LocalState, status: SupervisorStatus) -> list[str]:
    """What is not ready, of all that should be."""
    remembered = state.remembered()
    if remembered is None:
        return ["supervisor"]
    ready = {child.name for child in status.children if child.state is ChildState.READY}
    expected = expected_children(remembered, state.read_environment())
    return [name for name in expected if name not in ready]


def _say_where(state: LocalState) -> None:
    known = state.read_json(state.credentials)
    names = {"sandbox_url": "provider sandbox", "increase_fake_url": "Increase's fake"}
    of_banks = (f"  {names[name]:<18}{known[name]}\n" for name in names if name in known)
    print(
        f"""
  gateway           {known["base_url"]}
{"".join(of_banks)}  for operators     {known["operator_url"]}
  console           {known["console_url"]}{_first_log_in(known["operator"])}
  demo partner, first operator: keys in {state.credentials.relative_to(state.root)}

Next: make demo   (also: make status, make logs, make down)"""
    )


def _first_log_in(operator: Mapping[str, str]) -> str:
    password = operator.get("one_time_password")
    return f"  first log-in: operator, one-time password {password}" if password else ""
