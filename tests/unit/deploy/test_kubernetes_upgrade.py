"""deploy/kubernetes/upgrade: a step that fails ends it, and gateway and console come after every service."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.pace import pace

SCRIPT = Path("deploy/kubernetes/upgrade")
ROOT = Path(__file__).resolve().parents[3]
FIRST = ("reconciliation", "webhook-dispatcher", "onboarding")
SERVICES = ("ledger-read", "payments")
ADDRESSES = {"DATABASE": "postgres-rw:5432/bankside", "BROKER": "amqps://rabbitmq:5671/%2F"}
STUB = """#!/bin/sh
line="$(basename "$0") $*"
printf '%s\\n' "$line" >>"$STEPS"
case $line in
$FAILING) exit 1 ;;
*"job migrate"*conditions*) echo "$MIGRATED" | sed -n "$(grep -c 'migrate.*conditions' "$STEPS")p;\\$p" | head -n 1 ;;
*conditions*) echo "SuccessCriteriaMet Complete" ;;
*"job migrate"*ready*) [ "$(grep -c 'migrate.*ready' "$STEPS")" -gt "$STILL_AT_WORK" ] || echo 1 ;;
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
        still_at_work: int = 0,
    ) -> int:
        """Its exit status. The step that matches `failing`, a pattern of the shell, fails.

        Args:
            migrated: the conditions of their job, one look after the other, each in a line.
            still_at_work: how often they are found at work, those of an earlier run first.
        """
        environment = {
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "STEPS": str(self._steps),
            "FAILING": failing or "none",
            "MIGRATED": migrated,
            "STILL_AT_WORK": str(still_at_work),
            "POLL_SECONDS": "0",
            **addresses,
        }
        command = [str(self._folder / SCRIPT), "overlay"]
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=environment,
            capture_output=True,
            timeout=60 * pace(),
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


def test_three_services_are_rolled_out_before_the_others_and_gateway_and_console_after_these(
    cluster: Cluster,
) -> None:
    assert cluster.upgrade() == 0

    steps = cluster.steps()
    jobs = place(steps, "job migrate", "conditions")
    services = place(steps, "apply", "notin (gateway,console)")
    gateway, console = (place(steps, "apply", f"phase={name}") for name in ("gateway", "console"))
    rolled_out = [place(steps, "rollout status", f"deployment/{name}") for name in SERVICES]
    firsts = [
        place(steps, *words)
        for name in FIRST
        for words in (("apply", f"phase={name}"), ("rollout status", f"deployment/{name}"))
    ]
    assert [jobs, *firsts, services] == sorted([jobs, *firsts, services])
    assert services < min(rolled_out)
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
        "*job migrate*ready*",
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
    assert cluster.upgrade(migrated="\nFailureTarget\nFailureTarget Failed") != 0

    assert not any("notin" in step for step in cluster.steps())


def test_the_migrations_of_an_earlier_run_are_waited_for_and_not_deleted(cluster: Cluster) -> None:
    assert cluster.upgrade(still_at_work=3) == 0

    steps = cluster.steps()
    looks = [at for at, step in enumerate(steps) if "job migrate" in step and "ready" in step]
    assert len(looks) == 4
    assert max(looks) < place(steps, "delete job")


def test_migrations_that_take_long_are_waited_for(cluster: Cluster) -> None:
    assert cluster.upgrade(migrated="\n\n\nSuccessCriteriaMet\nSuccessCriteriaMet Complete") == 0

    assert sum("migrate" in step and "conditions" in step for step in cluster.steps()) == 5


@pytest.mark.parametrize("missing", ADDRESSES)
def test_it_does_not_begin_without_the_addresses_of_the_servers(
    cluster: Cluster, missing: str
) -> None:
    addresses = {name: value for name, value in ADDRESSES.items() if name != missing}

    assert cluster.upgrade(addresses=addresses) != 0

    assert cluster.steps() == []
