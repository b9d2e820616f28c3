"""The state of a supervisor as a small JSON file: its own process and its children's.

Status commands read it, and the start of the next supervisor ends the processes that a killed one left running.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Self

from libs.runtime.processes import ProcessIdentity, end_processes


class ChildState(Enum):
    STARTING = "starting"
    READY = "ready"
    NOT_READY = "not ready"
    DIED = "died"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ChildStatus:
    name: str
    state: ChildState
    restarts: int
    process: ProcessIdentity | None


@dataclass(frozen=True, slots=True)
class SupervisorStatus:
    process: ProcessIdentity
    children: tuple[ChildStatus, ...]

    def write(self, path: Path) -> None:
        """Replace the file at once: a reader sees the old state or the new one."""
        rows = [
            {
                "name": child.name,
                "state": child.state.value,
                "restarts": child.restarts,
                "process": _to_json(child.process),
            }
            for child in self.children
        ]
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"process": _to_json(self.process), "children": rows}))
        fresh.replace(path)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """The state that was written last, also by a supervisor that is dead by now; None when there is no file."""
        try:
            state = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        return cls(
            ProcessIdentity(**state["process"]),
            tuple(
                ChildStatus(
                    row["name"],
                    ChildState(row["state"]),
                    row["restarts"],
                    ProcessIdentity(**row["process"]) if row["process"] else None,
                )
                for row in state["children"]
            ),
        )


def end_leftovers(path: Path) -> list[str]:
    """End the children that a dead supervisor left running, by its state file; the names of those that still ran."""
    status = SupervisorStatus.read(path)
    if status is None:
        return []
    left = {
        child.name: child.process
        for child in status.children
        if child.process is not None and child.process.is_running()
    }
    end_processes(left.values())
    path.unlink(missing_ok=True)
    return list(left)


def _to_json(process: ProcessIdentity | None) -> dict[str, int] | None:
    return {"pid": process.pid, "started_at": process.started_at} if process else None
