"""`.local/`: everything that the stack of this checkout keeps, for its owner only."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets as random
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from deploy.local.banks import SANDBOX
from deploy.local.ports import free_ports, is_free
from deploy.local.services import SERVICES, Secrets
from libs.client.errors import OperatorError
from libs.runtime.supervision_state import SupervisorStatus

_SYSTEM_STATE = Path("/var/lib/bankside")
"""Where root's PostgreSQL data goes: it runs as `nobody`, who may enter neither `.local` nor perhaps its parents."""
_SERVER_PORTS = ("postgres", "rabbitmq", "rabbitmq_distribution", "epmd")


@dataclass(frozen=True)
class Remembered:
    """What is made at the first start and kept until `make clean`."""

    name: str
    """Tells the stacks of several checkouts on one machine apart."""
    secrets: Secrets = field(repr=False)
    ports: Mapping[str, int]
    """Of the servers, and the admin ports by service name."""
    bank: str = SANDBOX
    """Whose customers the data is about: one of `deploy.local.banks.BANKS`."""

    @classmethod
    def new(cls, bank: str = SANDBOX) -> Self:
        return cls(random.token_hex(4), Secrets.generate(), {}, bank).with_usable_ports()

    def with_usable_ports(self) -> Self:
        """Ports that are busy, or missing since a service is new, are chosen anew."""
        names = (*_SERVER_PORTS, *(service.name for service in SERVICES))
        kept = {n: self.ports[n] for n in names if n in self.ports and is_free(self.ports[n])}
        wanted = [name for name in names if name not in kept]
        # Ask for more than is needed: one of them may be one that is kept.
        fresh = [port for port in free_ports(len(names)) if port not in kept.values()]
        return replace(self, ports=kept | dict(zip(wanted, fresh, strict=False)))


@dataclass(frozen=True)
class LocalState:
    folder: Path

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.folder.parent

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def _stack(self) -> Path:
        return self.folder / "stack.json"

    @property
    def supervisor(self) -> Path:
        return self.folder / "supervisor.json"

    @property
    def environment(self) -> Path:
        return self.folder / "stack.env"

    @property
    def credentials(self) -> Path:
        return self.folder / "credentials.json"

    @property
    def migrated(self) -> Path:
        """Holds which revisions the database has."""
        return self.folder / "migrated"

    @property
    def broker_definitions(self) -> Path:
        """For a broker that runs elsewhere."""
        return self.folder / "broker-definitions.json"

    @property
    def prometheus_targets(self) -> Path:
        """The admin ports of the services, for deploy/observability/prometheus/local.yml."""
        return self.folder / "prometheus-targets.json"

    @property
    def increase_fake(self) -> Path:
        """What the fake of Increase remembers."""
        return self.folder / "increase-fake"

    @property
    def rabbitmq(self) -> Path:
        return self.folder / "rabbitmq"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def create(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.logs.mkdir(mode=0o700, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One command at a time changes the stack. Raises OperatorError when another is at it, or as `claim` does."""
        self.create()
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OperatorError(
                    "Another `make up`, `make down` or `make clean` is at work here: wait for it."
                ) from None
            self.claim()
            yield

    def claim(self) -> None:
        """Make the remembered stack that of this folder, which may have been moved here.

        Raises:
            OperatorError: the folder is a copy, and the one that it was copied from is still there. The processes and
                the database are that one's.
        """
        stored = self.read_json(self._stack)
        folder = str(self.folder.absolute())
        if stored is None or stored.get("folder") == folder:
            return
        if "folder" in stored and self._is_copy_of(Path(stored["folder"]), stored["name"]):
            raise OperatorError(
                f"{self.root} is a copy of {Path(stored['folder']).parent}, whose stack this would act on: remove"
                f" {self.folder}, then `make up` starts another stack here."
            )
        self.write_private(self._stack, json.dumps({**stored, "folder": folder}))

    def _is_copy_of(self, folder: Path, name: str) -> bool:
        """Whether the stack of this name is in another folder, rather than in this one by another path."""
        with contextlib.suppress(OSError, ValueError):
            other = json.loads((folder / self._stack.name).read_text())
            return other["name"] == name and not folder.samefile(self.folder)
        return False

    def postgres_home(self, remembered: Remembered) -> Path:
        return _SYSTEM_STATE / remembered.name if os.geteuid() == 0 else self.folder / "postgres"

    def remembered(self) -> Remembered | None:
        """None when there was no start yet. Secrets that an earlier release lacks are made at each call, until they are
        remembered.
        """
        stored = self.read_json(self._stack)
        if stored is None:
            return None
        secrets = Secrets.from_json(stored["secrets"])
        return Remembered(stored["name"], secrets, stored["ports"], stored.get("bank", SANDBOX))

    def remember(self, remembered: Remembered) -> None:
        stored = {**asdict(remembered), "folder": str(self.folder.absolute())}
        self.write_private(self._stack, json.dumps(stored))

    def write_environment(self, settings: Mapping[str, str]) -> None:
        """`stack.env`, in the format of dotenv files and of shells."""
        lines = [f"{name}='{_quoted(name, value)}'\n" for name, value in sorted(settings.items())]
        self.write_private(self.environment, "".join(lines))

    def read_environment(self) -> dict[str, str]:
        """What `write_environment` wrote; empty when there was no start yet."""
        if not self.environment.exists():
            return {}
        pairs = (line.split("=", 1) for line in self.environment.read_text().splitlines())
        return {name: value[1:-1] for name, value in pairs}

    def read_json(self, path: Path) -> Any:
        """None when there is no such file."""
        try:
            return json.loads(path.read_text())
        except FileNotFoundError:
            return None

    def write_private(self, path: Path, text: str) -> None:
        """Replace the file at once, readable by its owner only."""
        descriptor, fresh = tempfile.mkstemp(dir=self.folder, prefix=f".{path.name}.")  # mode 600
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        Path(fresh).replace(path)

    def delete(self) -> None:
        remembered = self.remembered()
        if remembered is not None and os.geteuid() == 0:
            shutil.rmtree(self.postgres_home(remembered), ignore_errors=True)
            with contextlib.suppress(OSError):  # other checkouts keep theirs there
                _SYSTEM_STATE.rmdir()
        shutil.rmtree(self.folder)


def running(state: LocalState) -> SupervisorStatus | None:
    """The stack that runs here; None when none does."""
    status = SupervisorStatus.read(state.supervisor)
    return status if status is not None and status.process.is_running() else None


def _quoted(name: str, value: str) -> str:
    if "'" in value or "\n" in value:
        raise OperatorError(f"{name} must not contain a quote or a line break.")
    return value
