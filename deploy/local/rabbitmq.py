"""A RabbitMQ node of our own beside any other on the machine: own name, ports, epmd, cookie and files.

The server comes from PATH or from where Debian's package puts it; `find_server` says where, `debian.install` gets it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from deploy.local.ports import LOOPBACK
from deploy.local.rabbitmq_applications import MODULES, link_applications
from deploy.rabbitmq.definitions import (
    ADMINISTRATOR,
    administrator_permissions,
    definitions,
    node_definitions,
)
from libs.runtime.supervision import ChildSpec

SHARED_CONF = Path(__file__).resolve().parents[1] / "rabbitmq" / "rabbitmq.conf"
PROBE_SECONDS = 3.0
COMMAND_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 4.0
"""Before a start. A node that cannot start for want of disk has every service wait for it once there is room."""
_DEBIAN_BINARIES = Path("/usr/lib/rabbitmq/bin")
_PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
_METHOD_FRAME = b"\x01"


class RabbitMQError(Exception):
    """The message says in a sentence what could not be done."""


def find_server() -> Path | None:
    """The `rabbitmq-server` script; None when RabbitMQ is not installed.

    What Debian puts on PATH is a wrapper that switches to the account `rabbitmq` and its node: we want the script
    that it wraps.
    """
    found = shutil.which("rabbitmq-server")
    if found and "su rabbitmq" not in Path(found).read_text(errors="replace"):
        return Path(found).resolve()
    script = _DEBIAN_BINARIES / "rabbitmq-server"
    return script if os.access(script, os.X_OK) else None


def urls_of_services(administrator_url: str, passwords: Mapping[str, str]) -> dict[str, str]:
    """Each service's own URL of the same virtual host."""
    parts = urlsplit(administrator_url)
    host = parts.netloc.rpartition("@")[2]
    return {
        service: parts._replace(netloc=f"{service}:{quote(password, safe='')}@{host}").geturl()
        for service, password in passwords.items()
    }


@dataclass(frozen=True)
class RabbitMQ:
    """One node, with all its files in `home`. `prepare`, then start `children` by a supervisor."""

    server: Path
    home: Path
    port: int
    distribution_port: int
    epmd_port: int
    name: str
    """Letters, digits and underscores; unique on the machine."""
    password: str = field(repr=False)
    """Of the administrator."""
    passwords: Mapping[str, str] = field(repr=False)
    """Of the services' users."""
    cookie: str = field(repr=False)
    vhost: str = "bankside"
    administrator_tags: Sequence[str] = ("administrator",)
    erlang_arguments: Sequence[str] = ()
    """More of them for Erlang's virtual machine."""

    @property
    def node(self) -> str:
        return f"{self.name}@localhost"

    def url(self, vhost: str | None = None) -> str:
        """The administrator's."""
        name = quote(vhost or self.vhost, safe="")
        user = f"{ADMINISTRATOR}:{quote(self.password, safe='')}"
        return f"amqp://{user}@{LOOPBACK}:{self.port}/{name}"

    def prepare(self) -> None:
        """Write configuration, definitions and cookie. A node with definitions makes neither `guest` nor another user
        by itself.
        """
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = (
            f"listeners.tcp.1 = {LOOPBACK}:{self.port}\n"
            f"load_definitions = {self.home / 'definitions.json'}\n"
        )
        document = node_definitions(
            self.password, self.passwords, self.vhost, self.administrator_tags
        )
        _write_private(self.home / "definitions.json", json.dumps(document))
        _write_private(self.home / "rabbitmq.conf", SHARED_CONF.read_text() + "\n" + own)
        _write_private(self.home / "enabled_plugins", "[].\n")
        link_applications(self.server, self._applications)
        cookie = self.home / ".erlang.cookie"
        if not cookie.exists():
            _write_private(cookie, self.cookie)
            cookie.chmod(0o400)

    @property
    def _applications(self) -> Path:
        return self.home / "applications"

    def _env(self) -> dict[str, str]:
        applications = self._applications
        erlang = ["-kernel", "inet_dist_use_interface", "{127,0,0,1}", *self.erlang_arguments]
        if applications.is_dir():
            erlang += ["-pa", str(applications / MODULES / "ebin")]
        return {
            **({"RABBITMQ_PLUGINS_DIR": str(applications)} if applications.is_dir() else {}),
            "PATH": os.environ.get("PATH", os.defpath),
            "LC_ALL": "C.UTF-8",
            "HOME": str(self.home),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self.epmd_port),
            "RABBITMQ_NODENAME": self.node,
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(erlang),
            "RABBITMQ_MNESIA_BASE": str(self.home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "enabled_plugins"),
            # Makes the script become the server instead of waiting for it, so that our signals reach it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }

    def children(self, epmd_log: Path | None, log: Path | None) -> tuple[ChildSpec, ChildSpec]:
        """For the supervisor, in this order: the port mapper, then the node.

        Without a port mapper of ours the node would start one that outlives it.
        """
        epmd = shutil.which("epmd")
        if epmd is None:
            raise RabbitMQError("RabbitMQ is installed but Erlang's `epmd` is not on PATH.")
        env = self._env()
        port_mapper = ChildSpec(
            "epmd",
            (epmd, "-port", str(self.epmd_port), "-address", LOOPBACK),
            env=env,
            ready=self._epmd_listens,
            watch=False,
            log_path=epmd_log,
        )
        node = ChildSpec(
            "rabbitmq",
            (str(self.server),),
            env=env,
            ready=self.is_ready,
            watch=False,
            log_path=log,
            cwd=self.home,
            stop_seconds=30,
            longest_pause_seconds=LONGEST_PAUSE_SECONDS,
            orphan_signal=signal.SIGTERM,
        )
        return port_mapper, node

    async def _epmd_listens(self) -> bool:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(LOOPBACK, self.epmd_port)
        writer.close()
        return True

    async def is_ready(self) -> bool:
        """Whether it begins the AMQP handshake: the listener opens last, when everything else is up."""
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, self.port)
            try:
                writer.write(_PROTOCOL_HEADER)
                await writer.drain()
                return await reader.read(1) == _METHOD_FRAME
            finally:
                writer.close()

    def control(self, arguments: Sequence[str]) -> int:
        """Run `rabbitmqctl` for this node in this terminal; its exit status."""
        tool = str(self.server.parent / "rabbitmqctl")
        return subprocess.run((tool, *arguments), env=self._env(), check=False).returncode

    async def create_vhosts(self, *names: str) -> None:
        """New virtual hosts with their exchanges, open to our users. A name has letters, digits, `_` and `-`."""
        # One call for all: each of `add_vhost` and `set_permissions` takes a second of processor time.
        document = definitions(names)
        document["permissions"] += administrator_permissions(names)
        await self._control("import_definitions", given=json.dumps(document))

    async def version(self) -> str:
        """Of the server that runs."""
        return (await self._control("version")).strip()

    async def _control(self, *command: str, given: str = "") -> str:
        """Run `rabbitmqctl` with `given` as its input; what it prints."""
        process = await asyncio.create_subprocess_exec(
            str(self.server.parent / "rabbitmqctl"),
            "--quiet",
            *command,
            env=self._env(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                output, _ = await process.communicate(given.encode())
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        if process.returncode != 0:
            lines = output.decode(errors="replace").strip().splitlines()
            raise RabbitMQError(f"rabbitmqctl: {lines[0] if lines else 'failed'}")
        return output.decode()


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
