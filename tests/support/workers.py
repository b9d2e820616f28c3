"""Dividing the tests among the workers of a run: those that share processes go to one, which starts these once.

Without it each worker would start the services of each folder for a few of its tests. Other tests go one by one to
whichever worker is free.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SAME_WORKER = (
    ("contract/ports",),
    ("contract/test_generated_clients.py",),
    ("e2e/at_increase",),
    ("e2e/console",),
    ("e2e/ledger", "e2e/webhooks"),
    ("e2e/wires",),
    (
        "e2e/test_command_line.py",
        "e2e/test_command_line_wheel.py",
        "e2e/test_listening.py",
        "e2e/test_newcomer.py",
        "e2e/test_python_client.py",
        "e2e/test_request_log.py",
        "e2e/typescript_client",
    ),
    (
        "e2e/test_audit.py",
        "e2e/test_authentication.py",
        "e2e/test_external_accounts.py",
        "e2e/test_guides.py",
        "e2e/test_metrics.py",
        "e2e/test_onboarding.py",
        "e2e/test_operating.py",
        "e2e/test_ownership.py",
        "e2e/test_reading.py",
        "e2e/test_schemathesis.py",
        "e2e/test_updates.py",
        "e2e/test_validation.py",
    ),
    (
        "faults/test_crashes.py",
        "faults/test_refusals.py",
        "faults/test_webhooks.py",
        "faults/test_wires.py",
        "faults/test_wires_crashes.py",
    ),
    ("faults/test_forgotten_keys.py",),
    ("faults/test_increase.py",),
    ("faults/test_provider_faults.py",),
    ("integration/gateway/test_gateway_broker.py",),
    ("integration/gateway/test_gateway_connections.py",),
    (
        "integration/gateway/test_gateway_documents.py",
        "integration/gateway/test_gateway_processes.py",
        "integration/gateway/test_gateway_tls.py",
    ),
    (
        "integration/gateway/test_gateway_audit.py",
        "integration/gateway/test_gateway_idempotency.py",
        "integration/gateway/test_gateway_sessions.py",
        "integration/gateway/test_gateway_traffic.py",
    ),
    ("integration/gateway",),
    (
        "integration/onboarding/test_applications.py",
        "integration/onboarding/test_external_accounts.py",
        "integration/onboarding/test_holders.py",
        "integration/onboarding/test_outages.py",
        "integration/onboarding/test_recorded_external_accounts.py",
        "integration/onboarding/test_secrets.py",
        "integration/onboarding/test_updates.py",
    ),
    ("integration/payments/test_crashes.py",),
    ("integration/payments/test_operator.py", "integration/payments/test_over_http.py"),
    ("integration/payments",),
    ("integration/provider_sandbox",),
    (
        "integration/reconciliation/test_differences.py",
        "integration/reconciliation/test_service.py",
    ),
    (
        "integration/reconciliation/test_balances.py",
        "integration/reconciliation/test_deposit_locations.py",
        "integration/reconciliation/test_explaining.py",
        "integration/reconciliation/test_feeds.py",
        "integration/reconciliation/test_looks.py",
        "integration/reconciliation/test_operating.py",
        "integration/reconciliation/test_running.py",
        "integration/reconciliation/test_suspects.py",
    ),
    ("integration/test_ledger_read.py",),
    ("integration/webhooks/api",),
    ("schema",),
    ("security/test_providers.py",),
    ("unit/deploy/test_containers.py",),
    ("upgrades",),
)
"""Folders and modules whose tests share processes; the first that fits counts. Each takes at most a minute, so that no
worker is the last for long; those of faults, which begin first, two.
"""


def share_of(nodeid: str) -> str:
    """The same for tests that one worker runs."""
    module = nodeid.partition("::")[0].removeprefix("tests/")
    for shared in SAME_WORKER:
        if module.startswith(shared):
            return shared[0]
    return nodeid


class SharedProcesses(LoadScopeScheduling):  # type: ignore[misc] # xdist is not typed
    # xdist documents no other way to say what belongs together; its marker `xdist_group` has no effect with pytest 9.2.
    def _split_scope(self, nodeid: str) -> str:
        return share_of(nodeid)

    def schedule(self) -> None:
        super().schedule()
        # A worker runs a test once it knows the next one. One that replaces a worker that died is given a single test
        # by xdist, would wait for the second, and the run for it.
        for node in self.nodes:
            if self._pending_of(self.assigned_work[node]) == 1:
                self._reschedule(node)
