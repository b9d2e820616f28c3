"""Lists and items: what is shown, and what is asked of the gateway."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from libs.contracts.errors import (
    NotFound,
    ProviderTimeout,
)
from libs.contracts.operating.audit import LIST_AUDIT, AuditRow
from libs.contracts.operating.commands import LIST_COMMANDS
from libs.contracts.operating.customers import GET_CUSTOMER, LIST_CUSTOMERS
from libs.contracts.operating.dead_letters import (
    GET_DEAD_LETTERS,
    DeadLetterWithBody,
    FoundDeadLetters,
)
from libs.contracts.operating.differences import (
    GET_DIFFERENCE,
    LIST_DIFFERENCES,
    LIST_RUNS,
    OperatorDifference,
    ReconciliationRun,
)
from libs.contracts.operating.feeds import (
    LIST_FEEDS,
    Feed,
    GatheredFeeds,
)
from libs.contracts.operating.pages import Listed, Order
from libs.contracts.operating.saga_steps import LIST_STEPS
from libs.contracts.operating.search import SEARCH, FoundId, Kind, SearchResult
from libs.contracts.operating.services import Gathered
from libs.contracts.operating.webhooks import LIST_EVENTS, OperatorEvent
from libs.contracts.operating.wire_policies import LIST_WIRE_POLICIES
from libs.contracts.operating.wires import (
    GET_WIRE,
    LIST_WIRES,
    ListOperatorWires,
    WireAtProvider,
)
from libs.contracts.wires import WireReason, WireState
from services.console.declarations import Subject
from services.console.pages import wires
from tests.unit.console.browser import console
from tests.unit.console.gateway_double import AT, TOKEN
from tests.unit.console.samples import (
    CUSTOMER_ID,
    NEXT,
    WIRE_ID,
    command,
    customer,
    customer_with,
    gateway,
    saga_step,
    wire,
    wire_detail,
)


async def test_a_list_is_narrowed_sorted_and_paged_by_its_address() -> None:
    double = gateway()
    async with console(double) as browser:
        answer = await browser.get(
            f"/wires?tenant=acme&state=submitted&unknown=true&order=oldest&after={NEXT}"
        )

    assert answer.status == 200
    assert double.commands(LIST_WIRES) == [
        ListOperatorWires(
            tenant="acme",
            state=WireState.SUBMITTED,
            unknown=True,
            order=Order.OLDEST,
            after=NEXT,
        )
    ]
    assert f'href="/wires/{WIRE_ID}"' in answer.text
    assert f'href="/customers/{CUSTOMER_ID}"' in answer.text
    assert f"state=submitted&amp;unknown=true&amp;order=oldest&amp;after={NEXT}" in answer.text
    [sorted_by] = re.findall(r'aria-sort="ascending"><a class="sort" href="([^"]+)"', answer.text)
    assert sorted_by == "/wires?tenant=acme&amp;state=submitted&amp;unknown=true&amp;order=newest"
    assert all(token == TOKEN for _, _, token in double.asked)


async def test_the_list_of_wires_says_whose_days_its_filters_take() -> None:
    async with console(gateway()) as browser:
        answer = await browser.get("/wires")

    assert "<code>End date</code> are days at the bank" in answer.text
    assert "Times are UTC." in answer.text


async def test_a_list_may_belong_to_an_item() -> None:
    page = replace(wires.LIST, path="/of/{customer_id}/wires")
    double = gateway()
    async with console(double, (("Test", (Subject(page),)),)) as browser:
        answer = await browser.get(f"/of/{CUSTOMER_ID}/wires?state=submitted")
        double.answer(LIST_WIRES, Listed(items=[wire()]))
        export = await browser.get(f"/of/{CUSTOMER_ID}/wires.csv")

    assert {command.customer_id for command in double.commands(LIST_WIRES)} == {CUSTOMER_ID}
    assert f'href="/of/{CUSTOMER_ID}/wires?state=submitted&amp;after=' in answer.text
    assert 'id="field-customer_id"' not in answer.text
    assert "{customer_id}" not in answer.text
    assert export.headers["Content-Disposition"] == 'attachment; filename="wires.csv"'


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("/commands", "Accepted"),
        ("/commands?state=parked", "Parked"),
        ("/customers?status=approved", "Created"),
        ("/customers?name=Bakery", None),
        ("/feeds", None),
    ],
)
async def test_a_list_says_by_which_column_it_is_sorted(path: str, column: str | None) -> None:
    double = gateway()
    feed = Feed(service="payments", feed="wires", position=7, stop=None)
    double.answer(LIST_COMMANDS, Gathered(items=[command()], unreachable=[]))
    double.answer(LIST_CUSTOMERS, Listed(items=[customer()]))
    double.answer(LIST_FEEDS, GatheredFeeds(feeds=[feed], unreachable=[]))
    async with console(double) as browser:
        answer = await browser.get(path)

    found = re.findall(r'aria-sort="descending"><a class="sort" [^>]*>(\w+) ', answer.text)
    assert "</table>" in answer.text
    assert found == ([column] if column else [])


async def test_the_link_to_an_export_lets_a_browser_show_another_page_in_its_place() -> None:
    """A click on a link with `download` stores the log-in as a file once the session has ended."""
    double = gateway()
    async with console(double) as browser:
        page = await browser.get("/wires?tenant=acme")

    [link] = re.findall(r'<a [^>]*id="csv"[^>]*>', page.text)
    assert 'href="/wires.csv?tenant=acme"' in link
    assert "download" not in link


async def test_values_that_no_filter_takes_are_said_beside_it() -> None:
    double = gateway()
    async with console(double) as browser:
        answer = await browser.get("/wires?state=nonsense&after=nonsense")

    assert answer.status == 422
    assert 'id="field-state-problem"' in answer.text
    assert double.commands(LIST_WIRES) == []


async def test_a_problem_of_what_is_no_filter_names_it() -> None:
    double = gateway()
    async with console(double) as browser:
        page = await browser.get("/wires?limit=ten")
        export = await browser.get("/wires.csv?state=foo")

    assert (page.status, export.status) == (422, 422)
    assert "Limit: A whole number." in page.text
    assert "State: One of: " in export.text
    assert "WireState" not in export.text


async def test_a_service_that_does_not_answer_is_said_and_the_page_stays() -> None:
    double = gateway()
    double.answer(LIST_WIRES, ProviderTimeout())
    async with console(double) as browser:
        answer = await browser.get("/wires")

    assert answer.status == 200
    assert "The service did not answer in time." in answer.text
    assert 'id="filters"' in answer.text


async def test_both_sides_of_a_wire_stand_beside_each_other() -> None:
    double = gateway()
    double.answer(
        GET_WIRE, wire_detail(provider=WireAtProvider(found=True, amount=Decimal("12.49")))
    )
    async with console(double) as browser:
        answer = await browser.get(f"/wires/{WIRE_ID}")

    assert answer.text.count('class="differs"') == 1
    assert "12.50" in answer.text
    assert "12.49" in answer.text


@pytest.mark.parametrize(
    ("state", "reason", "detail", "words", "differs"),
    [
        (WireState.RETURNED, WireReason.RETURNED, "R03 No account", "R03 No account", False),
        (WireState.RETURNED, WireReason.RETURNED, "R03 No account", "R04 Invalid number", True),
        (WireState.RETURNED, WireReason.RETURNED, None, None, False),
        (
            WireState.REJECTED,
            WireReason.INSUFFICIENT_FUNDS,
            None,
            WireReason.INSUFFICIENT_FUNDS.value,
            False,
        ),
    ],
)
async def test_the_reason_of_a_wire_differs_when_the_banks_words_are_not_those_that_were_recorded(
    state: WireState, reason: WireReason, detail: str | None, words: str | None, differs: bool
) -> None:
    at_bank = WireAtProvider(found=True, state=state, reason=words)
    double = gateway()
    double.answer(
        GET_WIRE,
        wire_detail(state=state, reason=reason, reason_detail=detail, provider=at_bank),
    )
    async with console(double) as browser:
        answer = await browser.get(f"/wires/{WIRE_ID}")

    assert answer.text.count('class="differs"') == int(differs)


async def test_the_pages_of_a_step_and_of_its_customer_tell_a_compensation_and_what_became_of_it() -> (
    None
):
    step = saga_step().model_copy(
        update={"compensation": True, "state": "refused", "settled_at": AT}
        | {"outcome_unknown": False, "refusal_code": "entity_locked", "resolved_by": "operator:eve"}
    )
    double = gateway()
    double.answer(LIST_STEPS, Listed(items=[step]))
    double.answer(GET_CUSTOMER, customer_with(step))
    double.answer(LIST_WIRE_POLICIES, Listed(items=[]))
    async with console(double) as browser:
        listed = await browser.get("/saga-steps?kind=refused")
        [link] = re.findall(r'href="(/saga-steps/[^"]+)"', listed.text)
        own = await browser.get(html.unescape(link))
        of_customer = await browser.get(f"/customers/{CUSTOMER_ID}")

    assert f'href="/customers/{CUSTOMER_ID}"' in listed.text
    for page in (own, of_customer):
        facts = ["Compensation", "Settled", "Refusal code", "entity_locked", "operator:eve"]
        assert [fact for fact in facts if fact not in page.text] == []


async def test_what_is_not_there_is_a_page_that_says_so() -> None:
    double = gateway()
    double.answer(GET_WIRE, NotFound())
    async with console(double) as browser:
        answer = await browser.get(f"/wires/{WIRE_ID}")

    assert answer.status == 404
    assert "There is nothing of this name" in answer.text


@pytest.mark.parametrize(
    "entry",
    [
        "gone wrong",
        '["gone wrong"]',
        '{"actor": "gone wrong"}',
        '{"at": "gone wrong"}',
        '{"at": "0001-01-01T00:00:00+23:00", "actor": "gone wrong"}',
        '{"at": "2026-11-23T01:02:03Z", "actor": "gone wrong \\ud800"}',
    ],
)
async def test_an_entry_of_the_audit_that_was_changed_is_shown_as_it_is_among_the_others(
    entry: str,
) -> None:
    written = '{"at": "2026-11-23T01:02:03Z", "actor": "sub_1", "action": "keys.revoke"}'
    rows = [
        AuditRow(day=AT.date(), number=n, entry=text, previous="00", hash="00")
        for n, text in ((3, written), (2, entry), (1, written))
    ]
    double = gateway()
    double.answer(LIST_AUDIT, Listed(items=rows, next=NEXT))
    async with console(double) as browser:
        answer = await browser.get("/audit")

    assert answer.status == 200
    assert entry in html.unescape(answer.text)
    assert "2026-11-23 2" in answer.text
    assert answer.text.count("keys.revoke") == 2
    assert f"after={NEXT}" in answer.text


async def test_the_actor_of_a_row_leads_to_the_rows_of_the_same_audit() -> None:
    entry = '{"at": "2026-11-23T01:02:03Z", "actor": "operator:ada", "action": "wires.resolve"}'
    row = AuditRow(day=AT.date(), number=1, entry=entry, previous="00", hash="00")
    double = gateway()
    double.answer(LIST_AUDIT, Listed(items=[row]))
    async with console(double) as browser:
        page = await browser.get("/audit?service=payments")
        [link] = re.findall(r'<a class="actor" href="([^"]+)"', page.text)
        await browser.get(html.unescape(link))

    assert [(asked.service, asked.actor) for asked in double.commands(LIST_AUDIT)] == [
        ("payments", None),
        ("payments", "operator:ada"),
    ]


async def test_the_ids_in_a_row_of_the_audit_are_links_but_those_of_operators_keys() -> None:
    entries = [
        '{"at": "2026-11-23T01:02:03Z", "action": "keys.revoke", "subscription_key": "sub_1"}',
        '{"at": "2026-11-23T01:02:03Z", "action": "operators.create", "subscription_key": "sub_2"}',
        '{"at": "2026-11-23T01:02:03Z", "action": "payments.send_wire", "command_id": "c-1"}',
        '{"at": "2026-11-23T01:02:03Z", "action": "wires.cancel", "transaction_id": "w-1"}',
    ]
    rows = [
        AuditRow(day=AT.date(), number=n, entry=entry, previous="00", hash="00")
        for n, entry in enumerate(entries)
    ]
    double = gateway()
    double.answer(LIST_AUDIT, Listed(items=rows))
    async with console(double) as browser:
        answer = await browser.get("/audit")

    found = re.findall(r'<span class="also">(\w+): <a class="id" href="([^"]+)"', answer.text)
    assert found == [("Key", "/keys/sub_1"), ("Command", "/search?q=c-1"), ("Wire", "/wires/w-1")]
    assert "sub_2" in answer.text


@pytest.mark.parametrize(
    ("changes", "subject", "links"),
    [
        ({}, "a-1", {"/search?q=a-1", f"/customers/{CUSTOMER_ID}"}),
        ({"ours": None}, "a-1", {f"/customers/{CUSTOMER_ID}"}),
        ({"kind": "account_unknown_to_us"}, "a-1", {f"/customers/{CUSTOMER_ID}"}),
        ({"ids": {"account_id": "a-1", "customer_id": "theirs"}}, "a-1", {"/search?q=a-1"}),
        ({"ids": {"feed": "postings"}, "subject": "postings"}, "postings", set()),
    ],
)
async def test_the_ids_of_a_difference_lead_to_what_is_here(
    changes: dict[str, Any], subject: str, links: set[str]
) -> None:
    values: dict[str, Any] = {
        "difference_id": WIRE_ID,
        "comparison": "accounts",
        "kind": "account_status",
        "subject": "a-1",
        "ids": {"account_id": "a-1", "customer_id": CUSTOMER_ID, "tenant": "acme"},
        "ours": {"status": "open"},
        "theirs": {"status": "closed"},
        "first_seen": AT,
        "last_seen": AT,
        "closed_at": None,
        "closed_as": None,
        "reason": None,
        "closed_by": None,
    }
    difference = OperatorDifference(**values | changes)
    double = gateway()
    double.answer(GET_DIFFERENCE, difference)
    double.answer(LIST_DIFFERENCES, Listed(items=[difference]))
    async with console(double) as browser:
        item = await browser.get(f"/differences/{WIRE_ID}")
        listed = await browser.get("/differences")

    assert {*re.findall(r'<a class="id" href="([^"]+)"', item.text)} == links
    assert (f'<a class="id" href="/search?q={subject}"' in listed.text) == (
        f"/search?q={subject}" in links
    )


@pytest.mark.parametrize(
    ("event_type", "leads"), [("wire.completed", True), ("transaction.created", False)]
)
async def test_the_resource_of_an_event_is_a_link_where_a_search_finds_it(
    event_type: str, leads: bool
) -> None:
    event = OperatorEvent(
        event_id="evt_1",
        type=event_type,
        tenant="acme",
        customer_id=None,
        resource_id="r-1",
        sequence=1,
        recorded_at=AT,
    )
    double = gateway()
    double.answer(LIST_EVENTS, Listed(items=[event]))
    async with console(double) as browser:
        answer = await browser.get("/events")

    assert "r-1" in answer.text
    assert ('href="/search?q=r-1"' in answer.text) == leads


async def test_the_id_of_a_dead_letter_is_no_link_on_the_pages_of_its_actions() -> None:
    values: dict[str, Any] = dict.fromkeys(DeadLetterWithBody.model_fields)
    letter = DeadLetterWithBody.model_construct(
        **values | {"id": WIRE_ID, "service": "payments", "queue": "payments.commands"}
    )
    double = gateway()
    double.answer(
        GET_DEAD_LETTERS, FoundDeadLetters.model_construct(letters=[letter], unreachable=[])
    )
    async with console(double) as browser:
        answer = await browser.get(
            f"/dead-letters/{WIRE_ID}/replay?service=payments&queue=payments.commands"
        )

    assert f">{WIRE_ID}<" in answer.text
    assert "/search?q=" not in answer.text


async def test_the_id_of_a_run_of_reconciliation_leads_to_no_search_that_finds_nothing() -> None:
    run = ReconciliationRun(
        run_id=WIRE_ID,
        cause="operator",
        state="complete",
        requested_at=AT,
        started_at=AT,
        finished_at=AT,
        looked_at=1,
        in_flight=0,
        differing=0,
        suspected=0,
    )
    double = gateway()
    double.answer(LIST_RUNS, Listed(items=[run]))
    async with console(double) as browser:
        answer = await browser.get("/reconciliation")

    assert WIRE_ID in answer.text
    assert "/search?q=" not in answer.text


async def test_a_letter_of_a_service_that_does_not_answer_is_not_said_to_be_missing() -> None:
    double = gateway()
    path = "/dead-letters/019aacf2-1b3e-7000-8000-000000000003"
    query = "?service=payments&queue=payments.commands"
    async with console(double) as browser:
        double.answer(GET_DEAD_LETTERS, FoundDeadLetters(letters=[], unreachable=["payments"]))
        away = await browser.get(path + query)
        replay = await browser.get(f"{path}/replay{query}")
        double.answer(GET_DEAD_LETTERS, FoundDeadLetters(letters=[], unreachable=[]))
        gone = await browser.get(path + query)

    assert away.status == 503
    assert "payments does not answer: what it has is missing here." in away.text
    assert replay.status == 200
    assert gone.status == 404


@pytest.mark.parametrize("unreachable", [[], ["payments"]])
async def test_that_there_is_none_is_said_when_all_services_have_answered(
    unreachable: list[str],
) -> None:
    double = gateway()
    double.answer(LIST_COMMANDS, Gathered(items=[], unreachable=unreachable))
    double.answer(SEARCH, SearchResult(found=[], unreachable=unreachable))
    async with console(double) as browser:
        pages = [await browser.get("/commands"), await browser.get(f"/search?q={WIRE_ID}")]

    for page, all_clear in zip(
        pages, ("There is none.", "No id here is like this one."), strict=True
    ):
        assert (all_clear in page.text) == (not unreachable)
        assert ("The services that answer have none." in page.text) == bool(unreachable)


async def test_an_empty_page_that_others_follow_says_so() -> None:
    double = gateway()
    double.answer(LIST_WIRES, Listed(items=[], next=NEXT))
    async with console(double) as browser:
        followed = await browser.get("/wires")
        double.answer(LIST_WIRES, Listed(items=[], next=None))
        last = await browser.get("/wires")

    assert "goes on with the next page" in followed.text
    assert "goes on with the next page" not in last.text


async def test_the_one_thing_that_an_id_names_is_gone_to() -> None:
    found = FoundId(service="payments", kind=Kind.WIRE, id=WIRE_ID)
    person = FoundId(service="onboarding", kind=Kind.PERSON, id=CUSTOMER_ID)
    double = gateway()
    async with console(double) as browser:
        double.answer(SEARCH, SearchResult(found=[found], unreachable=[]))
        one = await browser.get(f"/search?q={WIRE_ID}")
        double.answer(SEARCH, SearchResult(found=[found, person], unreachable=[]))
        two = await browser.get(f"/search?q={WIRE_ID}")
        double.answer(SEARCH, SearchResult(found=[found], unreachable=["onboarding"]))
        perhaps = await browser.get(f"/search?q={WIRE_ID}")

    assert one.location == f"/wires/{WIRE_ID}"
    assert f'href="/customers/{CUSTOMER_ID}"' in two.text
    assert "onboarding does not answer" in perhaps.text


@pytest.mark.parametrize(
    ("kind", "known", "page"),
    [
        (Kind.COMMAND, {"request_id": "req/1"}, "/requests/req%2F1"),
        (Kind.COMMAND, {}, f"/commands/{WIRE_ID}"),
        (
            Kind.DELIVERY,
            {"subscription_id": CUSTOMER_ID},
            f"/subscriptions/{CUSTOMER_ID}/deliveries/{WIRE_ID}",
        ),
        (Kind.DELIVERY, {"customer_id": CUSTOMER_ID}, f"/customers/{CUSTOMER_ID}"),
    ],
)
async def test_a_command_leads_to_its_request_and_a_delivery_to_its_page_where_they_are_known(
    kind: Kind, known: dict[str, str], page: str
) -> None:
    """A command has a page of its own until it is final. A service of the release before says neither."""
    found = FoundId(service="webhook_dispatcher", kind=kind, id=WIRE_ID, **known)
    double = gateway()
    double.answer(SEARCH, SearchResult(found=[found], unreachable=[]))
    async with console(double) as browser:
        answer = await browser.get(f"/search?q={WIRE_ID}")

    assert answer.location == page
