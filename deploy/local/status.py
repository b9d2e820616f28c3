"""`status`: every part with its state, asked now."""

from __future__ import annotations

from collections.abc import Mapping

from deploy.local.banks import PART, PORT_SETTING
from deploy.local.ports import LOOPBACK, local_url
from deploy.local.services import SERVICES, admin_address
from deploy.local.stack import expected_children
from deploy.local.state import LocalState, Remembered, running
from libs.gathering import gather_or_cancel
from libs.runtime.probes import http_ready
from libs.runtime.supervision_state import ChildState, ChildStatus

HEADINGS = ("PART", "STATE", "PID", "RESTARTS", "ADDRESS")


async def status(state: LocalState) -> bool:
    """Print the table; whether everything is ready."""
    supervisor = running(state)
    remembered = state.remembered()
    if supervisor is None or remembered is None:
        print("The stack is not running: `make up` starts it.")
        return False
    settings = state.read_environment()
    children = {child.name: child for child in supervisor.children}
    names = expected_children(remembered, settings)
    states = await gather_or_cancel(
        (_state_now(children.get(name), settings) for name in names), name="probe-part"
    )
    rows = [HEADINGS]
    for name, now in zip(names, states, strict=True):
        child = children.get(name)
        pid = str(child.process.pid) if child is not None and child.process else "-"
        restarts = str(child.restarts) if child is not None else "-"
        rows.append((name, now, pid, restarts, _address(name, remembered, settings)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line.rstrip())
    return all(now == ChildState.READY.value for now in states)


async def _state_now(child: ChildStatus | None, settings: Mapping[str, str]) -> str:
    """What the supervisor saw last, corrected by what a service answers at this moment."""
    if child is None:
        return "not started yet"
    service = next((service for service in SERVICES if service.name == child.name), None)
    if service is None or child.state not in {ChildState.READY, ChildState.NOT_READY}:
        return child.state.value
    try:
        is_ready = await http_ready(*admin_address(service, settings))()
    except (OSError, TimeoutError):
        is_ready = False
    return str((ChildState.READY if is_ready else ChildState.NOT_READY).value)


def _address(name: str, remembered: Remembered, settings: Mapping[str, str]) -> str:
    if name == PART:
        return f"http://{LOOPBACK}:{settings[PORT_SETTING]}"
    service = next((service for service in SERVICES if service.name == name), None)
    if service is None:
        return f"{LOOPBACK}:{remembered.ports[name]}"
    admin = local_url(*admin_address(service, settings)).removeprefix("http://") + " (admin)"
    if service.public_port is None:
        return admin
    host = settings.get(f"BANKSIDE_{service.prefix}_HOST", LOOPBACK)
    return f"{local_url(host, settings[service.port_setting])}, {admin}"
