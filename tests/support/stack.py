"""Services as real processes, for tests that need the whole of one or of all.

    async with running_stack(environment, tmp_path) as stack:
        await stack.kill("onboarding")
        await stack.restart("onboarding", BANKSIDE_CRASH_AT="saga.identity_created")

Nothing here is bound to an event loop: a stack may be started in one and used in another.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from deploy.local import banks
from deploy.local.ports import LOOPBACK
from deploy.local.services import (
    OPERATOR_PORT_SETTING,
    SERVICES,
    Service,
    settings_of,
    stack_settings,
)
from libs.runtime.probes import http_ready
from libs.runtime.supervision import ReadyCheck
from tests.support.api import ANSWER_SECONDS, Key, encode, signed_headers
from tests.support.command_line import Finished, run_bankside
from tests.support.infrastructure import Environment
from tests.support.launching import Launch, Program, Running, begin_loading, forked
from tests.support.operators import new_operator
from tests.support.pace import pace
from tests.support.ports import free_ports

BANK = banks.chosen_bank(os.environ.get("BANK") or None, None)
"""Of the stacks that e2e and fault tests share: `make test BANK=increase-fake` has them at the fake of Increase."""
SERVED = tuple(service for service in SERVICES if service.name != "console")
"""What callers need. The console is a process more, which its own tests ask for."""
READY_SECONDS = 30.0
STOP_SECONDS = 40.0
POLL_SECONDS = 0.05
KEYS = "/operator/keys"


class ServiceProcess:
    """One process of a service; it is started, ended and asked by the test, and never restarts by itself."""

    def __init__(
        self,
        module: str,
        settings: Mapping[str, str],
        log_path: Path,
        launch: Launch = forked,
        *arguments: str,
    ) -> None:
        """`settings` are all the BANKSIDE_ variables it gets; it must be told its ADMIN_PORT in them."""
        self.module = module
        self.arguments = arguments
        self.settings = dict(settings)
        self.log_path = log_path
        self._launch = launch
        self._process: Running | None = None

    @property
    def log(self) -> str:
        """All that it printed so far, over all its lives."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.module} was not started"
        return self._process.pid

    @property
    def admin_port(self) -> int:
        return next(int(v) for k, v in self.settings.items() if k.endswith("_ADMIN_PORT"))

    def is_ready(self) -> ReadyCheck:
        return http_ready(LOOPBACK, self.admin_port)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self, **changes: str) -> None:
        """Start it with some settings changed for this life, without waiting."""
        assert not self.is_running, f"{self.module} runs already"
        log = str(self.log_path)
        self._process = self._launch(
            Program(
                self.module,
                self.arguments,
                environment_with(self.settings | changes),
                str(Path.cwd()),
                log,
                log,
            )
        )

    async def ready(self, timeout_seconds: float = READY_SECONDS) -> None:
        """Return when it is ready. Fails with its log when it dies or takes too long."""
        check = self.is_ready()
        deadline = time.monotonic() + timeout_seconds * pace()
        while True:
            with contextlib.suppress(OSError, TimeoutError):
                if await check():
                    return
            ended = not self.is_running
            if ended or time.monotonic() > deadline:
                what = "ended" if ended else f"not ready after {timeout_seconds:g} s"
                raise AssertionError(f"{self.module}: {what}\n{self.log[-4000:]}")
            await asyncio.sleep(POLL_SECONDS)

    async def start(self, **changes: str) -> None:
        self.spawn(**changes)
        await self.ready()

    async def ended(self, timeout_seconds: float = STOP_SECONDS) -> int:
        """Wait until it has ended by itself; its exit code, negative for a signal."""
        assert self._process is not None, f"{self.module} was not started"
        deadline = time.monotonic() + timeout_seconds * pace()
        while (code := self._process.poll()) is None:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.module}: still running after {timeout_seconds:g} s")
            await asyncio.sleep(POLL_SECONDS)
        return code

    async def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        if self.is_running:
            os.kill(self.pid, signal.SIGKILL)
            await self.ended()

    async def stop(self) -> int:
        """SIGTERM, as a supervisor would; killed when it does not end in time. Its exit code."""
        if self.is_running:
            os.kill(self.pid, signal.SIGTERM)
        try:
            return await self.ended()
        except AssertionError:
            await self.kill()
            raise


class IncreaseFake(ServiceProcess):
    """The fake of Increase, in the sandbox's place."""

    @property
    def admin_port(self) -> int:
        return int(self.settings[banks.PORT_SETTING])

    def is_ready(self) -> ReadyCheck:
        return http_ready(LOOPBACK, self.admin_port, "/fake/health")


class Stack:
    """All services, or some, on one environment."""

    def __init__(
        self,
        environment: Environment,
        folder: Path,
        services: Iterable[Service] = SERVED,
        launch: Launch = forked,
        /,
        *,
        bank: str = banks.SANDBOX,
        **settings: str,
    ) -> None:
        self.environment = environment
        self.folder = folder
        self._launch = launch
        self._operator: Key | None = None
        public, admin = free_ports(len(SERVICES)), free_ports(len(SERVICES))
        fake, operator_port = free_ports(2)
        self.env: dict[str, str] = {
            **stack_settings(
                secrets=environment.secrets,
                database_urls=environment.database_urls,
                amqp_url=environment.amqp_url,
                amqp_urls=environment.amqp_urls,
                public_ports={s.name: port for s, port in zip(SERVICES, public, strict=True)},
                operator_port=operator_port,
                admin_ports={s.name: port for s, port in zip(SERVICES, admin, strict=True)},
            ),
            **banks.bank_settings(bank, environment.secrets, fake),
            # What a killed process held is taken over sooner than the default 10 s, so that tests need not wait.
            "BANKSIDE_LEASE_SECONDS": "3",
            # No load balancer has to see that the gateway ends.
            "BANKSIDE_GATEWAY_DRAIN_SECONDS": "0.25",
            "BANKSIDE_CONSOLE_DRAIN_SECONDS": "0.25",
            # A stack that waits for a test's next step costs the others a third less than with the default of 0.25 s.
            "BANKSIDE_FEED_POLL_SECONDS": "0.5",
            # Runs begin soon after a test requests one, and suspects are looked at again soon.
            "BANKSIDE_RECONCILIATION_POLL_SECONDS": "0.5",
            "BANKSIDE_RECONCILIATION_GRACE_SECONDS": "0.5",
            # The fake has no limit of requests.
            "BANKSIDE_RECONCILIATION_PROVIDER_REQUESTS_PER_SECOND": "1000",
            **settings,
        }
        """Every BANKSIDE_ variable, as `.local/stack.env` has them."""
        self.services: dict[str, ServiceProcess] = {}
        if banks.has_fake(self.env):
            self.services[banks.PART] = self._fake(folder, launch)
        self.services |= {
            service.name: ServiceProcess(
                f"services.{service.name}",
                settings_of(service, self.env),
                folder / f"{service.name}.log",
                launch,
            )
            for service in services
            if service in banks.services_beside(self.env)
        }

    def _fake(self, folder: Path, launch: Launch) -> ServiceProcess:
        module, *arguments = banks.fake_command(self.env, folder / "increase-fake")
        settings = banks.fake_settings(self.env)
        log = folder / f"{banks.PART}.log"
        return IncreaseFake(module, settings, log, launch, *arguments)

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.env['BANKSIDE_GATEWAY_PORT']}"

    @property
    def operator_url(self) -> str:
        """Of the gateway's listener for operators."""
        return f"http://{LOOPBACK}:{self.env[OPERATOR_PORT_SETTING]}"

    @property
    def sandbox_url(self) -> str:
        return f"http://{LOOPBACK}:{self.env['BANKSIDE_SANDBOX_PORT']}"

    @property
    def increase_url(self) -> str:
        """Of the fake of Increase, where that is the bank."""
        return f"http://{LOOPBACK}:{self.env[banks.PORT_SETTING]}"

    async def start(self) -> None:
        for service in self.services.values():
            service.spawn()
        for service in self.services.values():
            await service.ready()

    async def stop(self) -> None:
        """All at once: what matters is that nothing stays."""
        async with asyncio.TaskGroup() as group:
            for service in self.services.values():
                if service.is_running:
                    group.create_task(service.stop())

    async def restart(self, name: str, **changes: str) -> None:
        """End the service if it runs, and start it with `changes` to its settings."""
        if self.services[name].is_running:
            await self.services[name].stop()
        await self.services[name].start(**changes)

    async def kill(self, name: str) -> None:
        await self.services[name].kill()

    def log(self, name: str) -> str:
        return self.services[name].log

    async def new_key(self, family: str, *options: str) -> Key:
        """A key of a partner or a customer, requested over HTTP as `bankside keys create` does it, whose options these
        are: `bankside` would be a process for each key.
        """
        operator = await self._own_operator()
        content = encode({"family": family, "reason": "a test", **key_settings(options)})
        headers = signed_headers(operator, "POST", KEYS, content)
        async with aiohttp.request(
            "POST",
            self.operator_url + KEYS,
            data=content,
            headers={**headers, "Content-Type": "application/json"},
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
        ) as response:
            answer = await response.json(content_type=None)
        assert response.status == 200, answer
        made = answer["data"]
        return Key(made["subscription_key"], made["secret"], made["tenant"])

    async def _own_operator(self) -> Key:
        """Made once, with the role `admin`."""
        if self._operator is None:
            self._operator = await new_operator(self.environment)
        return self._operator

    async def command(self, *arguments: str) -> Any:
        """Run `bankside … --json` on this stack; its answer. Fails with what it said when it fails."""
        done = await self.run(*arguments, "--json")
        assert done.status == 0, f"bankside {arguments}: {done.err}{done.out}"
        return json.loads(done.out)

    async def run(self, *arguments: str) -> Finished:
        """Run `bankside` on this stack as an operator of its own, with the role `admin`."""
        key = await self._own_operator()
        environment = environment_with(
            self.env
            | {
                "BANKSIDE_BASE_URL": self.base_url,
                "BANKSIDE_OPERATOR_URL": self.operator_url,
                "BANKSIDE_OPERATOR_SUBSCRIPTION_KEY": key.subscription_key,
                "BANKSIDE_OPERATOR_SECRET": key.secret,
                "USER": "tester",
            }
        )
        return await run_bankside(arguments, environment, launch=self._launch)


def key_settings(options: Sequence[str]) -> dict[str, Any]:
    """The fields of `POST /operator/keys` for options of `bankside keys create`, each with its value."""
    settings: dict[str, Any] = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        match option:
            case "--tenant":
                settings["tenant"] = value
            case "--customer":
                settings["customer_id"] = value
            case "--scope":
                settings["scopes"] = [*settings.get("scopes", ()), value]
            case "--reads-per-minute" | "--writes-per-minute" | "--wires-per-minute":
                settings[option.removeprefix("--").replace("-", "_")] = int(value)
            case _:
                raise ValueError(f"{option} is not known here")
    return settings


def environment_with(settings: Mapping[str, str]) -> dict[str, str]:
    """This process' environment, with these settings rather than its own."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("BANKSIDE_")}
    return {**inherited, **settings}


@contextlib.asynccontextmanager
async def running_stack(
    environment: Environment,
    folder: Path,
    services: Iterable[Service] = SERVED,
    launch: Launch = forked,
    /,
    *,
    bank: str = banks.SANDBOX,
    **settings: str,
) -> AsyncIterator[Stack]:
    """A stack that is ready, and stopped afterwards."""
    if launch is forked:
        begin_loading()  # a database and a virtual host may have to be made
    stack = Stack(environment, folder, services, launch, bank=bank, **settings)
    try:
        await stack.start()
        yield stack
    finally:
        await stack.stop()
