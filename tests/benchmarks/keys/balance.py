"""The signed balance read, which several keys measure."""

from __future__ import annotations

from tests.benchmarks.bench import Bench
from tests.benchmarks.partner import Partner
from tests.benchmarks.processor_time import ProcessorTime, parts_of
from tests.benchmarks.signed_requests import Target, signed
from tests.benchmarks.wrk import Load
from tests.support.stack import Stack

CONNECTIONS = 64


def balance_load(
    bench: Bench, stack: Stack, partner: Partner, connections: int = CONNECTIONS
) -> Load:
    return Load(
        stack.base_url,
        signed(balance_target(stack.base_url, partner), partner.key),
        expected_balance(partner),
        connections,
        ProcessorTime(parts_of(stack, bench.servers)),
    )


def balance_target(base_url: str, partner: Partner) -> Target:
    return Target(base_url, "GET", f"/partner/reseller/accounts/balance/{partner.account_id}")


def expected_balance(partner: Partner) -> str:
    return f'"account_id":"{partner.account_id}"'
