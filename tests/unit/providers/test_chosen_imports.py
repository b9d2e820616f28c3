"""What a company needs is loaded when it is chosen, and not before."""

from __future__ import annotations

import subprocess
import sys

SERVICES = ("onboarding", "payments", "ledger_read", "reconciliation")
LOADING = """
import sys
from importlib import import_module
from libs.providers.companies import Company, composition
for service in sys.argv[1:]:
    import_module(f"services.{service}.app")
    composition(f"services.{service}.adapters", Company.SANDBOX)
print(*(name for name in sys.modules if "increase" in name.split(".")))
"""


def test_services_at_the_sandbox_load_nothing_of_another_company() -> None:
    loading = subprocess.run(
        [sys.executable, "-c", LOADING, *SERVICES],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert loading.returncode == 0, loading.stderr
    assert loading.stdout.split() == []
