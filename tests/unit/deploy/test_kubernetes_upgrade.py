"""deploy/kubernetes/upgrade: a step that fails ends it, and gateway and console come after every service."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path("deploy/kubernetes/upgrade")
ROOT = Path(__file__).resolve().parents[3]
SERVICES = ("onboarding", "ledger-read", "payments", "webhook-dispatcher", "reconciliation")
ADDRESSES = {"DATABASE": "postgres-rw:5432/bankside", "BROKER": "amqps://rabbitmq:5671/%2F"}
STUB = """#!/bin/sh
line="$(basename "$0") $*"
printf '%s\\n' "$line" >>"$STEPS"
case $line in
$FAILING) exit 1 ;;
*"job migrate"*conditions*) echo "$MIGRATED" ;;
*conditions*) echo "SuccessCriteriaMet Complete" ;;
*"job migrate"*active*) [ "$(grep -c active "$STEPS")" -gt "$STILL_ACTIVE" ] || echo 1 ;;
esac
"""


class Cluster:
    """A checkout whose other programs, `kubectl` among them, write down that they were called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._steps = folder / "steps"
        (folder / SCRIPT).parent.mkdir(parents=True)
        shutil.copy(ROOT / SCRIPT, folder / SCRIPT)
        (folder / "overlay").mkdir()
        for name in (
            "bin/kubectl",
            "deploy/docker/make-env",
            "deploy/kubernetes/give-secrets",
            "deploy/rabbitmq/start",
        ):
            program = folder / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(STUB)
            program.chmod(0o755)

    def upgrade(
        self,
        *,
        failing: str = "",
        addresses: dict[str, str] = ADDRESSES,
        migrated: str = "Complete",
        still_active: int = 0,
    ) -> int:
        """Its exit status. The step that matches `failing`, a pattern of the shell, fails.

        Args:
            migrated: how the migrations ended.
            still_active: how often those of an earlier run are found at work.
        """
        environment = {
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "STEPS": str(self._steps),
            "FAILING": failing or "none",
            "MIGRATED": migrated,
            "STILL_ACTIVE": str(still_active),
            "POLL_SECONDS": "0",
            **addresses,
        }
        command = [str(self._folder / SCRIPT), "overlay"]
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode

    def steps(self) -> list[str]:
        return self._steps.read_text().splitlines() if self._steps.exists() else []


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def place(steps: list[str], *words: str) -> int:
    """Of the only step that has all of the words."""
    [found] = [at for at, step in enumerate(steps) if all(word in step for word in words)]
    return found


def test_gateway_and_console_are_applied_after_every_service_is_rolled_out(
    cluster: Cluster,
) -> None:
    assert cluster.upgrade() == 0

    steps = cluster.steps()
    jobs = place(steps, "job migrate", "conditions")
    services = place(steps, "apply", "notin (gateway,console)")
    gateway, console = (place(steps, "apply", f"phase={name}") for name in ("gateway", "console"))
    rolled_out = [place(steps, "rollout status", f"deployment/{name}") for name in SERVICES]
    assert jobs < services < min(rolled_out)
    assert max(rolled_out) < gateway < place(steps, "rollout status", "deployment/gateway")
    assert place(steps, "rollout status", "deployment/gateway") < console


@pytest.mark.parametrize(
    "failing",
    [
        "make-env*",
        "give-secrets*",
        "start print*",
        "*import_definitions*",
        "*phase=before*",
        "*job migrate*active*",
        "*job migrate*conditions*",
        "*notin*",
        "*status*payments*",
        "*status*gateway*",
    ],
)
def test_nothing_is_done_after_a_step_that_failed(cluster: Cluster, failing: str) -> None:
    assert cluster.upgrade() == 0
    complete = cluster.steps()

    assert cluster.upgrade(failing=failing) != 0

    again = cluster.steps()[len(complete) :]
    assert again == complete[: len(again)]
    assert len(again) < len(complete)


def test_no_service_is_applied_when_the_migrations_failed(cluster: Cluster) -> None:
    assert cluster.upgrade(migrated="FailureTarget Failed") != 0

    assert not any("notin" in step for step in cluster.steps())


def test_the_migrations_of_an_earlier_run_are_waited_for_and_not_deleted(cluster: Cluster) -> None:
    assert cluster.upgrade(still_active=3) == 0

    steps = cluster.steps()
    active = [at for at, step in enumerate(steps) if "active" in step]
    assert len(active) == 4
    assert max(active) < place(steps, "delete job")


@pytest.mark.parametrize("missing", ADDRESSES)
def test_it_does_not_begin_without_the_addresses_of_the_servers(
    cluster: Cluster, missing: str
) -> None:
    addresses = {name: value for name, value in ADDRESSES.items() if name != missing}

    assert cluster.upgrade(addresses=addresses) != 0

    assert cluster.steps() == []
