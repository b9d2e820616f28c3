"""Every benchmark by its key, in the order in which they run."""

from __future__ import annotations

from tests.benchmarks.bench import Run
from tests.benchmarks.keys import (
    backlog,
    console_pages,
    deep_page,
    deliveries,
    deliveries_slow,
    events_page,
    footprint,
    hostile_client,
    mirror_page,
    onboarding_path,
    partner_list,
    read_latency,
    read_path,
    read_path_peer,
    scale_out,
    start,
    write_path,
)

KEYS: dict[str, Run] = {
    "read_path": read_path.run,
    "read_path_peer": read_path_peer.run,
    "read_latency": read_latency.run,
    "write_path": write_path.run,
    "onboarding_path": onboarding_path.run,
    "partner_list": partner_list.run,
    "deep_page": deep_page.run,
    "mirror_page": mirror_page.run,
    "deliveries": deliveries.run,
    "deliveries_slow": deliveries_slow.run,
    "backlog": backlog.run,
    "events_page": events_page.run,
    "console_pages": console_pages.run,
    "scale_out": scale_out.run,
    "footprint": footprint.run,
    "footprint_increase": footprint.run_at_increase,
    "hostile_client": hostile_client.run,
    "start": start.run,
}
