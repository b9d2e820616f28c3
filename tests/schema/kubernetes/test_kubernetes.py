"""deploy/kubernetes: what it renders is valid, is strict, and has the same services, settings, ports and secrets as
docker-compose.yml.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel

from libs.persistence.engine import open_database
from services.ledger_read.settings import Settings as LedgerReadSettings
from services.onboarding.settings import Settings as OnboardingSettings
from services.payments.settings import Settings as PaymentsSettings
from services.reconciliation.settings import Settings as ReconciliationSettings
from services.webhook_dispatcher.settings import Settings as DispatcherSettings
from tests.faults.campaign.replicas import MIN_READY_SECONDS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
STOPPING = (
    (FOLDER / "README.md").read_text().partition("## Stopping services")[2].partition("## ")[0]
)
OVERLAYS = ("small", "highly-available")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SERVERS = {"postgres", "rabbitmq"}
OURS = {n: row for n, row in COMPOSE.items() if n not in SERVERS and "profiles" not in row}
CUSTOM = {
    "Cluster": "postgresql.cnpg.io/v1",
    "RabbitmqCluster": "rabbitmq.com/v1beta1",
    "Certificate": "cert-manager.io/v1",
    "Issuer": "cert-manager.io/v1",
    "ScaledObject": "keda.sh/v1alpha1",
}
"""Kinds of operators, whose schemas are not Kubernetes' own."""
RENDER_SECONDS = 60
VERSION = "1.34"
"""Of Kubernetes, whose schemas are used."""
OF_THE_ADDRESS = {"BANKSIDE_ADMIN_HOST", "BANKSIDE_GATEWAY_OPERATOR_HOST", "BANKSIDE_CONSOLE_HOST"}
OF_THE_CLUSTER = {"BANKSIDE_DATABASE_CA_FILE", "BANKSIDE_AMQP_CA_FILE"}
OF_THE_CERTIFICATE = {
    "BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE",
    "BANKSIDE_GATEWAY_TLS_KEY_FILE",
    "BANKSIDE_CONSOLE_OPERATOR_CA_FILE",
    "SSL_CERT_FILE",
}
"""Of the gateway's, which there is here: in compose it does not leave the machine."""
PRIVATE = {"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"}

Row = dict[str, Any]


@cache
def has_kubectl() -> bool:
    """One that knows kustomize's components."""
    if shutil.which("kubectl") is None:
        return False
    command = ["kubectl", "version", "--client", "--output", "json"]
    told = json.loads(subprocess.check_output(command, timeout=RENDER_SECONDS))["clientVersion"]
    return (int(told["major"]), int(told["minor"].rstrip("+"))) >= (1, 21)


@cache
def rendered(overlay: str) -> list[Row]:
    if not has_kubectl():
        pytest.skip("there is no kubectl, of release 1.21 or later, to render deploy/kubernetes")
    command = ["kubectl", "kustomize", str(FOLDER / overlay)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=RENDER_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def of_kind(overlay: str, *kinds: str) -> dict[str, Row]:
    return {r["metadata"]["name"]: r for r in rendered(overlay) if r["kind"] in kinds}


def pods(overlay: str) -> Iterator[tuple[str, Row, Row]]:
    """The names of ours, as compose has them, with the template of the pod and its container."""
    for name, row in of_kind(overlay, "Deployment", "Job").items():
        pod = row["spec"]["template"]
        [container] = pod["spec"]["containers"]
        yield name.replace("-", "_"), pod, container


def settings(overlay: str, container: Row) -> dict[str, str]:
    """All that a process is told: what is shared, and its own."""
    [reference] = container["envFrom"]
    shared = of_kind(overlay, "ConfigMap")[reference["configMapRef"]["name"]]["data"]
    own = {row["name"]: row["value"] for row in container["env"] if "value" in row}
    return {**shared, **own}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_object_is_one_that_kubernetes_takes(overlay: str) -> None:
    for row in rendered(overlay):
        if row["kind"] in CUSTOM:
            assert row["apiVersion"] == CUSTOM[row["kind"]]
        else:
            kubernetes_validate.validate(row, VERSION, strict=True)
        if row["kind"] != "Namespace":
            assert row["metadata"]["namespace"] == "bankside"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_it_has_the_services_and_jobs_of_compose(overlay: str) -> None:
    without = {"provider_sandbox"} if overlay == "highly-available" else set()

    assert {name for name, *_ in pods(overlay)} == OURS.keys() - without | {"schemas"}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_upgrade_takes_jobs_and_three_services_first_and_gateway_and_console_last(
    overlay: str,
) -> None:
    phases = {
        name: row["metadata"]["labels"]["bankside/phase"]
        for name, row in of_kind(overlay, "Deployment", "Job").items()
        if "bankside/phase" in row["metadata"].get("labels", {})
    }

    jobs = dict.fromkeys(("schemas", "migrate"), "before")
    alone = ("reconciliation", "webhook-dispatcher", "onboarding", "gateway", "console")
    assert phases == jobs | {name: name for name in alone}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_process_is_told_what_it_is_told_in_compose(overlay: str) -> None:
    for name, _, container in pods(overlay):
        if name == "schemas":
            continue
        told = settings(overlay, container)
        # One without a value is set only where an operator sets it, here by a patch.
        expected = {k: v for k, v in OURS[name]["environment"].items() if v is not None}
        assert told.keys() >= expected.keys(), name
        own = {row["name"] for row in container["env"]} - OF_THE_CERTIFICATE
        assert own <= expected.keys(), name
        for setting in own - OF_THE_ADDRESS:
            if setting.endswith("_FILE") or setting == "SERVICE":
                assert told[setting] == expected[setting], setting
    shared = set().union(*(row["environment"] for row in OURS.values())) | OF_THE_CLUSTER
    for row in of_kind(overlay, "ConfigMap").values():
        assert row["data"].keys() <= shared


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_process_gets_the_secrets_of_its_own_folder_and_has_no_other_rights(overlay: str) -> None:
    for name, pod, container in pods(overlay):
        spec = pod["spec"]
        volumes = {row["name"]: row for row in spec["volumes"]}
        secret = volumes["secrets"]["secret"]
        expected = "postgres" if name == "schemas" else name.replace("_", "-")
        assert (secret["secretName"], secret["defaultMode"]) == (expected, 0o440)
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"] == "768Mi"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_what_operators_send_and_are_shown_is_encrypted_from_pod_to_pod(overlay: str) -> None:
    certificate = of_kind(overlay, "Certificate")["gateway"]["spec"]
    found = {name: (pod["spec"], container) for name, pod, container in pods(overlay)}
    gateway, console = (settings(overlay, found[name][1]) for name in ("gateway", "console"))

    assert console["BANKSIDE_CONSOLE_OPERATOR_URL"] == gateway["BANKSIDE_OPERATOR_URL"]
    for url in (gateway["BANKSIDE_OPERATOR_URL"], gateway["BANKSIDE_BASE_URL"]):
        parts = urlsplit(url)
        assert parts.scheme == "https"
        assert parts.hostname in {*certificate["dnsNames"], *certificate["ipAddresses"]}
    assert gateway["BANKSIDE_PLAINTEXT_HOSTS"] == ""
    mounted = {
        "gateway": {
            gateway["BANKSIDE_GATEWAY_TLS_CERTIFICATE_FILE"]: "tls.crt",
            gateway["BANKSIDE_GATEWAY_TLS_KEY_FILE"]: "tls.key",
            gateway["SSL_CERT_FILE"]: "ca.crt",
        },
        "console": {console["BANKSIDE_CONSOLE_OPERATOR_CA_FILE"]: "ca.crt"},
    }
    for name, files in mounted.items():
        spec, container = found[name]
        [volume] = (
            row
            for row in spec["volumes"]
            if row.get("secret", {}).get("secretName") == certificate["secretName"]
        )
        [mount] = (row for row in container["volumeMounts"] if row["name"] == volume["name"])
        for path, key in files.items():
            assert path == f"{mount['mountPath']}/{key}"
    assert volume["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}], "without the key"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_takes_part_in_the_networks_of_its_container(overlay: str) -> None:
    for name, pod, _ in pods(overlay):
        labels = pod["metadata"]["labels"]
        prefix = "network.bankside/"
        found = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
        networks = {"database"} if name == "schemas" else set(OURS[name]["networks"])
        assert found == networks - {"admin"}, name
    policies = of_kind(overlay, "NetworkPolicy")
    assert policies["nothing"]["spec"] == {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
    }
    named = set(re.findall(r"network\.bankside/([a-z]+)", str(policies)))
    used = {network for _, row in OURS.items() for network in row["networks"]} - {"admin"}
    assert named == used


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_ports_are_those_of_the_settings_and_policies_let_them_be_reached(overlay: str) -> None:
    services = of_kind(overlay, "Service")
    for name, _, container in pods(overlay):
        told = settings(overlay, container) if name != "schemas" else {}
        wanted = {
            int(value)
            for setting, value in told.items()
            if setting.endswith("_PORT") and name != "migrate"
        }
        assert {port["containerPort"] for port in container.get("ports", ())} == wanted, name
    listened = {port["port"] for row in services.values() for port in row["spec"]["ports"]}
    policies = str(of_kind(overlay, "NetworkPolicy"))
    for port in listened:
        assert f"'port': {port}" in policies
    for row in of_kind(overlay, "Deployment").values():
        [container] = row["spec"]["template"]["spec"]["containers"]
        assert {
            container[probe]["httpGet"]["path"] for probe in ("startupProbe", "livenessProbe")
        } == {"/health"}
        assert container["readinessProbe"]["httpGet"]["path"] == "/ready"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_new_pod_serves_for_as_long_as_in_the_rolling_restarts_of_make_faults(
    overlay: str,
) -> None:
    for row in of_kind(overlay, "Deployment").values():
        assert row["spec"]["minReadySeconds"] == MIN_READY_SECONDS


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_pod_that_ends_serves_on_and_has_the_time_to_finish(overlay: str) -> None:
    for name, row in of_kind(overlay, "Deployment").items():
        spec = row["spec"]["template"]["spec"]
        [container] = spec["containers"]
        hook = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        compose = OURS[name.replace("-", "_")]["stop_grace_period"]
        longest = DispatcherSettings.model_fields["shutdown_seconds"].default

        assert hook >= 5
        assert spec["terminationGracePeriodSeconds"] >= max(
            hook + longest, int(compose.removesuffix("s"))
        )
        assert row["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_servers_are_reached_by_their_networks_and_the_internet_is_no_private_address(
    overlay: str,
) -> None:
    policies = of_kind(overlay, "NetworkPolicy")
    for server, network, port in (("postgres", "database", 5432), ("rabbitmq", "broker", 5671)):
        rules = policies[server]["spec"]["ingress"]
        member = {"podSelector": {"matchLabels": {f"network.bankside/{network}": "true"}}}
        assert {"from": [member], "ports": [{"protocol": "TCP", "port": port}]} in rules
        for rule in rules:
            for peer in rule["from"]:
                assert all(selector for selector in peer.values()), server
    for name in ("callbacks", "providers"):
        [rule] = policies[name]["spec"]["egress"]
        [to] = rule["to"]
        assert to["ipBlock"]["cidr"] == "0.0.0.0/0"
        assert set(to["ipBlock"]["except"]) >= PRIVATE
    assert "ports" not in policies["callbacks"]["spec"]["egress"][0]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_broker_is_configured_as_everywhere(overlay: str) -> None:
    lines = (ROOT / "deploy" / "rabbitmq" / "rabbitmq.conf").read_text().splitlines()
    shared = {line for line in lines if line and not line.startswith("#")}
    [cluster] = of_kind(overlay, "RabbitmqCluster").values()

    given = set(cluster["spec"]["rabbitmq"]["additionalConfig"].splitlines())

    assert given - shared == {"load_definitions = /etc/bankside/definitions.json"}
    assert shared <= given


def test_of_each_service_two_are_there_where_one_may_go() -> None:
    overlay = "highly-available"
    counts = {
        **{n: r["spec"].get("replicas", 0) for n, r in of_kind(overlay, "Deployment").items()},
        **{
            n: r["spec"]["minReplicas"]
            for n, r in of_kind(overlay, "HorizontalPodAutoscaler").items()
        },
        **{n: r["spec"]["minReplicaCount"] for n, r in of_kind(overlay, "ScaledObject").items()},
    }

    assert set(counts.values()) == {2}
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert budgets.keys() == counts.keys() | {"rabbitmq"}
    assert budgets["rabbitmq"]["spec"]["maxUnavailable"] == 1
    [broker] = of_kind(overlay, "RabbitmqCluster").values()
    [database] = of_kind(overlay, "Cluster").values()
    assert broker["spec"]["replicas"] == database["spec"]["instances"] == 3
    assert database["spec"]["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    [shared] = of_kind(overlay, "ConfigMap").values()
    assert shared["data"]["BANKSIDE_QUERY_QUEUES"] == "quorum"
    assert shared["data"]["BANKSIDE_PROFILE"] == "production"


def test_what_keda_scales_is_stopped_after_it_was_paused() -> None:
    commands = re.findall(r"(?m)^ *kubectl --namespace bankside (.+)$", STOPPING)
    pause, resume = (commands.index(one) for one in commands if one.startswith("annotate "))
    stops = {i: one for i, one in enumerate(commands) if one.startswith("scale deployment ")}
    waits = {i: one for i, one in enumerate(commands) if one.startswith("wait --for=delete pod ")}

    stopped = [one.split()[2:-1] for one in stops.values()]
    awaited = [re.findall(r" in \((.*)\)", one)[0].split(",") for one in waits.values()]
    deployments = of_kind("highly-available", "Deployment").keys()
    assert {name for names in stopped for name in names} == deployments - {"console"}
    assert stopped == awaited, "each is waited for"
    assert stopped[0] == ["gateway"], "callers first"
    assert all(one.endswith(" --replicas=0") for one in stops.values())
    assert pause < min(stops)
    assert max(waits) < resume
    assert commands[pause].endswith(" autoscaling.keda.sh/paused=true")
    assert commands[resume].endswith(" autoscaling.keda.sh/paused-")


def test_a_restore_pauses_keda_before_the_case_of_payments_is_opened_and_resumes_it_last() -> None:
    page = (ROOT / "deploy" / "PRODUCTION.md").read_text()
    _, _, restoring = page.partition("**Restoring to a moment**")
    link = "[Stopping services](kubernetes/README.md#stopping-services)"

    pause, resume = (found.start() for found in re.finditer(re.escape(link), restoring))
    case = restoring.index("INSERT INTO payments.database_life")
    held = restoring.index("UPDATE webhook_dispatcher.subscription")
    start = restoring.index("scale deployment onboarding ledger-read payments")
    assert pause < case < held < start < restoring.index("`bankside restores close ") < resume


def test_postgresql_takes_the_connections_of_the_most_replicas_as_one_more_starts() -> None:
    overlay = "highly-available"
    most = {
        **{n: r["spec"].get("replicas", 0) for n, r in of_kind(overlay, "Deployment").items()},
        **{
            n: r["spec"]["maxReplicas"]
            for n, r in of_kind(overlay, "HorizontalPodAutoscaler").items()
        },
        **{n: r["spec"]["maxReplicaCount"] for n, r in of_kind(overlay, "ScaledObject").items()},
    }
    settings_of: dict[str, type[BaseModel]] = {
        "ledger-read": LedgerReadSettings,
        "onboarding": OnboardingSettings,
        "payments": PaymentsSettings,
        "reconciliation": ReconciliationSettings,
        "webhook-dispatcher": DispatcherSettings,
    }
    pool_sizes = {
        "gateway": inspect.signature(open_database).parameters["pool_size"].default,
        **{
            name: of_service.model_fields["database_connections"].default
            for name, of_service in settings_of.items()
        },
    }
    assert most.keys() - pool_sizes.keys() == {"console"}, "it has no database"
    pools_of_a_process = 2

    connections = sum(
        pools_of_a_process * size * (most[name] + 1) for name, size in pool_sizes.items()
    )

    [database] = of_kind(overlay, "Cluster").values()
    assert connections == 820
    assert int(database["spec"]["postgresql"]["parameters"]["max_connections"]) > connections
