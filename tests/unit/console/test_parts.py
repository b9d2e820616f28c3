"""The parts of which pages are made."""

from __future__ import annotations

import csv
import io
import itertools
import re
from datetime import timedelta
from decimal import Decimal

import pytest

from libs.contracts.customers import CustomerStatus
from libs.contracts.errors import ProviderTimeout, Unavailable
from libs.contracts.operating.commands import ListCommandsOf
from libs.contracts.operating.customers import OperatorPerson
from libs.contracts.operating.keys import CreateKey, RotateKey
from libs.contracts.operating.overview import (
    GET_OVERVIEW,
    Overview,
    QueueDepth,
    ServiceOverview,
    Waiting,
    WaitingKind,
)
from libs.contracts.operating.saga_steps import ResolveStep, StepResolution
from libs.contracts.operating.traffic import GET_TRAFFIC, MinuteOfTraffic, QueuedMessages, Traffic
from libs.contracts.operating.wires import ListOperatorWires
from libs.contracts.principal import Role, Scope
from services.console import csv_export
from services.console.charts import chart
from services.console.details import sections_of
from services.console.forms import Widget, WrongValues, command_of, fields_of
from services.console.overview import charts_of
from services.console.pages import customers
from services.console.values import Kind, age, cell
from tests.support.with_each import with_each
from tests.unit.console.browser import console
from tests.unit.console.gateway_double import AT, GatewayDouble


@with_each(
    [
        *("=1+1", "+1", "-1+1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "\n1", " =1", "\n\t @A1"),
        *(
            "\u00a0-A1",
            "\u200b=1",
            "\ufeff=1",
            "\x00+1",
            "\uff1d1",
            "\uff0b1",
            "\uff0d1",
            " \uff20A1",
            "-1.",
            "--1",
        ),
    ],
    repr,
)
def test_a_cell_is_never_a_formula(text: str) -> None:
    [[read, other]] = csv.reader(io.StringIO(csv_export.rows([[text, "1-1"]]).decode(), newline=""))

    assert read.startswith("'")
    assert (read.replace("'", ""), other) == (text, "1-1")


@with_each(
    itertools.product(
        [
            "Acme;=1+1;",
            "a\t=1+1",
            "a; +1",
            "a;\uff1d1",
            "a;\u200b@A1",
            "a\n=1",
            "a;-1+1",
            "a,=1",
            'a;"=1+1;',
            'a\t"=1+1\t',
        ],
        [",", ";", "\t"],
    )
)
def test_nor_is_one_of_another_separator(case: tuple[str, str]) -> None:
    text, delimiter = case
    written = csv_export.rows([["customer", text, "1-1"]]).decode()

    read = csv.reader(io.StringIO(written, newline=""), delimiter=delimiter)

    for seen in itertools.chain.from_iterable(read):
        assert not seen.lstrip(" \t\u200b").startswith(("=", "+", "-", "@", "\uff1d")), seen


@with_each(["-1", "-1250.00", "0.5", "a=1", " text", "", "2026-11-23", "A; B", "x;-5"], repr)
def test_a_number_and_a_text_stay_as_they_are_in_csv(text: str) -> None:
    assert csv_export.escaped(text) == text


def test_a_chart_has_its_highest_value_on_top_and_no_point_where_nothing_was_measured() -> None:
    times = [AT + timedelta(minutes=n) for n in range(4)]

    drawn = chart("requests", "Requests", [0, None, 10, 5], times, "a minute")

    assert drawn.line == "0.0,46.0 160.0,2.0 240.0,24.0"
    assert (drawn.latest, drawn.highest) == ("5 a minute", "10 a minute")
    assert chart("none", "None", [None, None], times).is_empty
    assert chart("one", "One", [None, 4, None], times).line == "118.0,2.0 122.0,2.0"


def test_a_value_that_is_not_known_now_is_not_shown_as_the_present_one() -> None:
    times = [AT + timedelta(minutes=n) for n in range(4)]

    stopped = chart("payments", "payments", [7, 0, None, None], times)
    never = chart("payments", "payments", [None] * 4, times)

    assert (stopped.latest, stopped.highest) == ("not known since 01:04", "7")
    assert never.latest == "no data"


def test_a_quiet_minute_has_no_latency() -> None:
    times = [AT + timedelta(minutes=n) for n in range(2)]

    quiet = chart("latency", "Latency", [7, None], times, "ms", nothing="no requests")
    busy = chart("latency", "Latency", [None, 7], times, "ms", nothing="no requests")

    assert (quiet.latest, quiet.highest) == ("no requests", "7 ms")
    assert busy.latest == "7 ms"


def test_values_are_shown_by_what_they_are() -> None:
    assert cell("amount", Decimal("1234567890123456.78")).text == "1,234,567,890,123,456.78"
    assert cell("state", "pending_approval").kind is Kind.BADGE
    assert cell("customer_id", "a/b").href == "/customers/a%2Fb"
    assert cell("identity_id", "x y").href == "/search?q=x%20y"
    assert cell("account_id", "acc_1").href == "/search?q=acc_1"
    assert cell("id", "wt_1").href is None, "the name does not say of what"
    assert cell("by", "operator:ada").href == "/audit?service=payments&actor=operator%3Aada"
    assert cell("created_at", AT).machine == "2026-11-23T01:02:03Z"
    assert cell("note", None).kind is Kind.NOTHING
    assert [cell(name, True).tone for name in ("outcome_unknown", "primary")] == ["wait", "plain"]
    assert age(AT, AT + timedelta(minutes=3, seconds=5)) == "3 min"
    assert age(AT + timedelta(days=3, seconds=5), AT) == "in 3 d"


def test_a_persons_id_leads_to_its_person_and_not_to_a_customer() -> None:
    person = OperatorPerson(
        customer_id="p-1",
        first_name="Ada",
        last_name="Marsh",
        status=CustomerStatus.APPROVED,
        controller=True,
        ownership_percentage=Decimal(60),
        identity_id=None,
        core_id=None,
    )
    section = sections_of(customers.DETAIL, {"persons": [person]}, Role.VIEWER)[0]

    assert section.table is not None
    label, cell_of_id = section.table.rows[0].cells[0]
    assert (label, cell_of_id.href) == ("Person", "/search?q=p-1")


def test_json_that_others_wrote_is_shown_as_it_is() -> None:
    body = '{"amount":1234567890123456.780,"amount":"\\u202e"}'
    deep = "[" * 100_000

    assert cell("body", body).text == (
        '{\n  "amount": 1234567890123456.780,\n  "amount": "\\u202e"\n}'
    )
    assert cell("response_body", deep).text == deep
    assert cell("body", "no {json").text == "no {json"


def test_a_form_follows_from_the_command() -> None:
    fields = {field.name: field for field in fields_of(CreateKey, {"reason"})}

    assert fields["family"].choices == ("partner", "customer")
    assert fields["family"].required
    assert fields["scopes"].widget is Widget.LINES
    assert fields["wires_per_minute"].default == "60"
    assert fields["allowed_networks"].default == ""


@pytest.mark.parametrize(("chosen", "given"), [("", None), ("yes", True), ("no", False)])
def test_a_flag_whose_absence_has_a_meaning_is_a_choice_of_three(
    chosen: str, given: bool | None
) -> None:
    typed = {"family": "partner", "tenant": "acme", "reason": "Why."}
    [field] = [each for each in fields_of(CreateKey) if each.name == "require_idempotency_key"]

    made = command_of(CreateKey, {**typed, field.name: chosen})

    assert (field.widget, field.choices, field.unset) == (Widget.CHOICE, ("yes", "no"), "Default")
    assert made.require_idempotency_key is given


def test_what_is_typed_becomes_a_command() -> None:
    typed = {
        "family": "partner",
        "tenant": " acme ",
        "scopes": "wires:read\nwires:write",
        "wires_per_minute": "7",
        "reason": "Why.",
    }

    made = command_of(CreateKey, typed)

    assert (made.tenant, made.wires_per_minute) == ("acme", 7)
    assert made.scopes == [Scope.WIRES_READ, Scope.WIRES_WRITE]
    hours = command_of(
        RotateKey, {"subscription_key": "k", "overlap_hours": "1.5", "reason": "Why."}
    )
    assert hours.overlap_hours == Decimal("1.5")


@with_each(["1,5", "1,50", "12,3456", "1,250,5", ",5", "1e2", "1_0", "\u0661", "NaN"], repr)
def test_a_number_that_could_mean_another_is_not_guessed(text: str) -> None:
    with pytest.raises(WrongValues) as wrong:
        command_of(RotateKey, {"subscription_key": "k", "overlap_hours": text, "reason": "Why."})

    assert wrong.value.problems == {"overlap_hours": "A number, such as 1250.5 or 1,250.5."}


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"resolution": "nonsense"}, "resolution"),
        ({"resolution": "done"}, "result"),
        ({"resolution": "done", "result": "no json"}, "result"),
        ({"resolution": "done", "result": '{"id": "\\ud800"}'}, "result"),
        ({"resolution": "done", "result": '{"id": "\\u0000"}'}, "result"),
        ({"resolution": "absent", "result": "{}"}, "result"),
        ({}, "resolution"),
    ],
)
def test_a_problem_is_said_at_its_field(typed: dict[str, str], problem: str) -> None:
    with pytest.raises(WrongValues) as wrong:
        command_of(ResolveStep, {"saga_id": "s", "step": "core", "reason": "Why.", **typed})

    assert problem in wrong.value.problems


def test_a_problem_is_said_without_the_words_of_the_program() -> None:
    typed = {"state": "foo", "unknown": "maybe", "limit": "ten", "order": "by name"}

    with pytest.raises(WrongValues) as wrong:
        command_of(ListOperatorWires, typed)

    problems = wrong.value.problems
    assert problems["state"].startswith("One of: pending_")
    assert problems["unknown"] == "Yes or no."
    assert problems["limit"] == "A whole number."
    assert problems["order"] == "One of: newest, oldest."
    assert "Limit: A whole number." in str(wrong.value)


def test_a_service_that_there_is_not_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(WrongValues) as wrong:
        command_of(ListCommandsOf, {"service": "bank"})

    assert wrong.value.problems == {"service": "One of: onboarding, payments, webhook_dispatcher."}


def test_a_field_that_the_wire_calls_otherwise_is_typed_by_its_own_name() -> None:
    typed = {"saga_id": "s", "step": "core", "resolution": "absent", "reason": "Why."}

    assert command_of(ResolveStep, typed).resolution is StepResolution.ABSENT


async def test_what_waits_stands_on_top_the_oldest_first() -> None:
    double = GatewayDouble()
    waits = [
        Waiting(kind=WaitingKind.DEAD_LETTERS, count=1000, oldest_at=AT),
        Waiting(kind=WaitingKind.UNKNOWN_WIRES, count=2, oldest_at=AT - timedelta(hours=2)),
        Waiting(kind=WaitingKind.PARKED_COMMANDS, count=0, oldest_at=None),
    ]
    queues = [QueueDepth(queue="payments.commands", messages=1234)]
    services = [
        ServiceOverview(service="payments", waiting=waits, queues=queues),
        ServiceOverview(service="onboarding", waiting=[], queues=None),
    ]
    double.answer(GET_OVERVIEW, Overview(services=services, unreachable=["ledger_read"]))
    double.answer(GET_TRAFFIC, ProviderTimeout())
    async with console(double) as browser:
        page = await browser.get("/")
        last = await browser.get("/?part=live&left=0", {"HX-Request": "true"})

    text = page.text
    assert text.index("waits-unknown_wires") < text.index("waits-dead_letters")
    assert "waits-parked_commands" not in text
    assert all(said in text for said in ("1,000 or more", "1,234", "ledger_read does not answer"))
    assert "The broker does not tell onboarding" in text
    assert 'hx-get="/?part=live&amp;left=59"' in text
    assert "<html" not in last.text
    assert "hx-get" not in last.text


@pytest.mark.parametrize("unreachable", [[], ["payments"]])
async def test_that_nothing_waits_is_said_when_all_services_have_answered(
    unreachable: list[str],
) -> None:
    double = GatewayDouble()
    double.answer(GET_OVERVIEW, Overview(services=[], unreachable=unreachable))
    double.answer(GET_TRAFFIC, Traffic(bounds_ms=[5], minutes=[], queues=[]))
    async with console(double) as browser:
        page = await browser.get("/")

    assert ("Nothing waits for a person." in page.text) == (not unreachable)
    assert ("Nothing waits in the services that answer." in page.text) == bool(unreachable)


async def test_what_the_overview_renews_has_ids_by_which_the_focus_is_kept() -> None:
    double = GatewayDouble()
    parked = Waiting(kind=WaitingKind.PARKED_COMMANDS, count=1, oldest_at=AT)
    services = [
        ServiceOverview(
            service=name,
            waiting=[parked],
            queues=[QueueDepth(queue=f"{name}.commands", messages=1)],
        )
        for name in ("onboarding", "payments")
    ]
    double.answer(GET_OVERVIEW, Overview(services=services, unreachable=[]))
    double.answer(GET_TRAFFIC, Traffic(bounds_ms=[5], minutes=[], queues=[]))
    async with console(double) as browser:
        page = await browser.get("/?part=live")

    focusable = re.findall(r'<a [^>]*>|<[^>]* tabindex="0"[^>]*>', page.text)
    ids = [re.findall(r' id="([^"]+)"', tag) for tag in focusable]
    assert len(focusable) == 4
    assert len({each for [each] in ids}) == 4


def test_a_minute_without_requests_has_no_latency() -> None:
    minutes = [
        MinuteOfTraffic(
            minute=AT + timedelta(minutes=number),
            requests=requests,
            refused=0,
            failed=0,
            latency=[requests, 0],
        )
        for number, requests in enumerate([10, 0, 5])  # the last one is not over
    ]

    charts = charts_of(Traffic(bounds_ms=[5, 100], minutes=minutes, queues=[]))

    assert [one.latest for one in charts if one.title.startswith("Latency")] == ["no requests"]


async def test_the_last_hour_is_drawn_also_when_nothing_else_is_answered() -> None:
    double = GatewayDouble()
    counts = [10, 30, 999]
    minutes = [
        MinuteOfTraffic(
            minute=AT + timedelta(minutes=number),
            requests=n,
            refused=0,
            failed=1,
            latency=[n - 1, 1],
        )
        for number, n in enumerate(counts)
    ]
    queued = QueuedMessages(service="payments", messages=[40, None, 999])
    double.answer(GET_TRAFFIC, Traffic(bounds_ms=[5, 100], minutes=minutes, queues=[queued]))
    double.answer(GET_OVERVIEW, Unavailable())
    async with console(double) as browser:
        text = (await browser.get("/")).text

    assert "The service cannot be reached." in text
    assert "Requests over the last hour: now 30 a minute, at most 30 a minute" in text
    assert "Latency (p95) over the last hour: now 5 ms, at most 100 ms" in text
    assert "payments over the last hour: now not known since 01:03, at most 40" in text
