"""docker-compose.yml: each container reaches what it must, and is hardened and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from deploy.local.services import PROVIDER_APIS

ROOT = Path(__file__).resolve().parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
CONTAINERS: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: row for name, row in CONTAINERS.items() if name not in {"postgres", "rabbitmq"}}


def test_containers_share_networks_with_what_they_must_reach_only() -> None:
    members: dict[str, set[str]] = {name: set() for name in COMPOSE["networks"]}
    for name, row in CONTAINERS.items():
        for network in row["networks"]:
            members[network].add(name)

    services = OURS.keys() - {"migrate", "broker", "provider_sandbox"}
    assert members == {
        "callers": {"gateway"},
        "callbacks": {"webhook_dispatcher"},
        "providers": {*PROVIDER_APIS, "provider_sandbox"},
        "database": {*services, "provider_sandbox", "migrate", "postgres"},
        "broker": {*services, "broker", "rabbitmq"},
        "admin": {*services, "provider_sandbox"},
    }
    internal = {name for name, row in COMPOSE["networks"].items() if (row or {}).get("internal")}
    assert internal == {"database", "broker", "admin"}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_hardened_and_bounded(name: str) -> None:
    row = CONTAINERS[name]

    assert name == "rabbitmq" or row["read_only"] is True
    assert row["cap_drop"] == ["ALL"]
    assert row["security_opt"] == ["no-new-privileges:true"]
    assert row["mem_limit"]
    assert row["pids_limit"]
    assert name not in OURS or "cap_add" not in row
    assert all(port.startswith("127.0.0.1:") for port in row.get("ports", ()))
