"""Where a Prometheus beside `make up` finds the services."""

from __future__ import annotations

from deploy.local.services import SERVICES, prometheus_targets

ADMIN_PORTS = {
    f"BANKSIDE_{service.prefix}_ADMIN_PORT": str(9100 + 10 * number)
    for number, service in enumerate(SERVICES)
}


def test_each_service_is_a_target_under_its_name() -> None:
    targets = prometheus_targets({"BANKSIDE_ADMIN_HOST": "127.0.0.1", **ADMIN_PORTS}, SERVICES)

    assert [one["labels"]["service"] for one in targets] == [service.name for service in SERVICES]
    assert [one["targets"] for one in targets] == [
        [f"127.0.0.1:{port}"] for port in ADMIN_PORTS.values()
    ]


def test_each_process_of_the_gateway_is_a_target() -> None:
    settings = {
        "BANKSIDE_ADMIN_HOST": "127.0.0.1",
        "BANKSIDE_GATEWAY_ADMIN_PORT": "9000",
        "BANKSIDE_GATEWAY_PROCESSES": "3",
    }
    gateway = [service for service in SERVICES if service.name == "gateway"]

    [found] = prometheus_targets(settings, gateway)

    assert found["targets"] == ["127.0.0.1:9000", "127.0.0.1:9001", "127.0.0.1:9002"]
