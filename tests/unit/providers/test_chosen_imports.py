"""What a setting chooses, a company or traces, is loaded when it is chosen, and not before."""

from __future__ import annotations

import subprocess
import sys

from tests.support.pace import pace

SERVICES = ("onboarding", "payments", "ledger_read", "reconciliation", "webhook_dispatcher")
LOADING = """
import os, sys
from importlib import import_module
from libs.providers.companies import Company, composition
for service in sys.argv[1:]:
    import_module(f"services.{service}.__main__")
    import_module(f"services.{service}.app")
    if service != "webhook_dispatcher":  # which asks no company
        composition(f"services.{service}.adapters", Company.SANDBOX)
from libs.runtime.tracing import traced
with traced("gateway", None):
    chosen = {"increase", "opentelemetry"}
    print(*(name for name in sys.modules if chosen.intersection(name.split("."))))
"""


def test_services_at_the_sandbox_without_traces_load_nothing_of_another_company_or_of_tracing() -> (
    None
):
    loading = subprocess.run(
        [sys.executable, "-c", LOADING, *SERVICES],
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * pace(),
    )

    assert loading.returncode == 0, loading.stderr
    assert loading.stdout.split() == []
