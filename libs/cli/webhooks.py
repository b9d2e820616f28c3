"""`bankside webhooks …`: subscriptions whose deliveries fail, what was sent to them, and sending it again."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from cyclopts import App

from libs.cli.decisions import Flag, reason_of
from libs.cli.output import age, console, escape, print_json
from libs.cli.pages import first_of, list_of
from libs.client.errors import OperatorError
from libs.client.operator_client import ask
from libs.contracts.errors import InvalidState, NotFound
from libs.contracts.operating import webhooks as contract
from libs.contracts.operating.webhooks import (
    OperatorDelivery,
    OperatorDeliveryDetail,
    OperatorSubscription,
    OperatorSubscriptionDetail,
    SubscriptionCondition,
)
from libs.contracts.webhook_views import DeliveryFilter

SHOWN_DELIVERIES = 10

app = App(name="webhooks", help="Webhooks: subscriptions that fail, their deliveries, resend.")


@app.command
def failing(
    *,
    state: SubscriptionCondition = SubscriptionCondition.FAILING,
    tenant: str | None = None,
    limit: int = 50,
    json: Flag = False,
) -> int:
    """List subscriptions that have deliveries of which an attempt has failed, the newest first.

    Such as `bankside webhooks failing --tenant acme`.

    Args:
        state: Instead, those that are active, disabled, unavailable or slow, or whose circuit breaker is open.
        tenant: Only those of this tenant.
        limit: How many to show at most.
        json: Print one JSON document.
    """
    query = contract.ListOperatorSubscriptions(state=state, tenant=tenant)
    found = list_of(contract.LIST_SUBSCRIPTIONS, query, limit)
    if json:
        print_json({"subscriptions": [one.model_dump() for one in found]})
        return 0
    for one in found:
        _show_subscription(one)
    if not found:
        console().print("There is none.")
    return 0


@app.command
def show(subscription_id: UUID, delivery_id: UUID | None = None, /, *, json: Flag = False) -> int:
    """Show a subscription with its health and failing deliveries, or one delivery with its attempts.

    Such as `bankside webhooks show SUBSCRIPTION_ID`, or `bankside webhooks show SUBSCRIPTION_ID DELIVERY_ID`.

    Args:
        subscription_id: As listed.
        delivery_id: One of its deliveries.
        json: Print one JSON document.
    """
    if delivery_id is not None:
        delivery = _delivery(subscription_id, delivery_id)
        if json:
            print_json({"delivery": delivery.model_dump()})
        else:
            _show_attempts(delivery)
        return 0
    one = _subscription(subscription_id)
    query = contract.ListOperatorDeliveries(
        subscription_id=str(subscription_id), status=DeliveryFilter.FAILING
    )
    found = first_of(contract.LIST_DELIVERIES, query, SHOWN_DELIVERIES)
    if json:
        print_json(
            {"subscription": one.model_dump(), "failing": [each.model_dump() for each in found]}
        )
        return 0
    _show_subscription(one)
    _show_health(one)
    for each in found:
        _show_delivery(each)
    return 0


@app.command
def resend(subscription_id: UUID, delivery_id: UUID, /, *, reason: str, json: Flag = False) -> int:
    """Deliver an event to a subscription once more, at once; where the circuit breaker is open, as its probe.

    Such as `bankside webhooks resend SUBSCRIPTION_ID DELIVERY_ID --reason "their endpoint is repaired"`.

    Args:
        subscription_id: An active subscription.
        delivery_id: Any of its deliveries whose event is kept.
        reason: Why, for the audit.
        json: Print one JSON document.
    """
    command = contract.OperatorResend(
        subscription_id=str(subscription_id),
        delivery_id=str(delivery_id),
        reason=reason_of(reason),
    )
    try:
        made = ask(contract.RESEND, command)
    except NotFound:
        raise OperatorError(
            f"There is no delivery {delivery_id} of {subscription_id}, or its event is kept no longer."
        ) from None
    except InvalidState as refusal:
        raise OperatorError(refusal.detail) from None
    if json:
        print_json({"delivery": made.model_dump()})
        return 0
    role = " as the probe of the circuit breaker" if made.circuit_breaker == "probe" else ""
    console().print(f"Is sent{role}: {made.delivery_id}")
    return 0


def _subscription(subscription_id: UUID) -> OperatorSubscriptionDetail:
    try:
        return ask(
            contract.GET_SUBSCRIPTION,
            contract.GetOperatorSubscription(subscription_id=str(subscription_id)),
        )
    except NotFound:
        raise OperatorError(f"There is no subscription {subscription_id}.") from None


def _delivery(subscription_id: UUID, delivery_id: UUID) -> OperatorDeliveryDetail:
    command = contract.GetOperatorDelivery(
        subscription_id=str(subscription_id), delivery_id=str(delivery_id)
    )
    try:
        return ask(contract.GET_DELIVERY, command)
    except NotFound:
        raise OperatorError(f"There is no delivery {delivery_id} of {subscription_id}.") from None


def _show_subscription(one: OperatorSubscription) -> None:
    console().print(
        f"{one.subscription_id}  [bold]{one.status}[/], {one.health_state.replace('_', ' ')}"
        f"  {escape(one.tenant)}/{one.customer_id or ''}  {escape(one.event_type)} to {escape(one.callback_url)}"
    )


def _show_health(one: OperatorSubscriptionDetail) -> None:
    out, health, now = console(), one.health, datetime.now(UTC)
    out.print(
        f"  for {age(health.since, now)}; last success {age(health.last_success_at, now)} ago;"
        f" {health.pending} pending, {health.failing} of them failing"
    )
    if health.last_error is not None:
        said = health.last_error.error or f"It answered {health.last_error.response_status}."
        out.print(f"  last failure {age(health.last_error.at, now)} ago: {escape(said)}")
    if health.next_probe_at is not None:
        out.print(
            f"  circuit breaker {one.breaker.state.replace('_', ' ')}, next probe"
            f" {health.next_probe_at:%Y-%m-%d %H:%M:%S}Z"
        )


def _show_delivery(one: OperatorDelivery) -> None:
    following = f", next {one.next_attempt_at:%Y-%m-%d %H:%M:%S}Z" if one.next_attempt_at else ""
    role = f", {one.circuit_breaker} at the circuit breaker" if one.circuit_breaker else ""
    console().print(
        f"  {one.delivery_id}  {escape(one.event_type)} {one.event_id}  {one.status},"
        f" attempts: {one.attempts_made}{following}{role}"
    )


def _show_attempts(one: OperatorDeliveryDetail) -> None:
    _show_delivery(one)
    out = console()
    out.print(f"  to {escape(one.callback_url)}")
    for attempt in one.attempts:
        said = attempt.error or f"It answered {attempt.response_status}."
        out.print(
            f"  {attempt.attempted_at:%Y-%m-%d %H:%M:%S}Z  {attempt.duration_ms} ms  {escape(said)}"
        )
        for name, value in attempt.request_headers.items():
            out.print(f"      {name}: {escape(value)}")
        if attempt.response_body:
            out.print(f"      answer: {escape(attempt.response_body)}")
    out.print(f"  body: {escape(one.body)}" if one.body else "  The event is kept no longer.")
