"""The typed client: a method for each operation of partners and customers, with safe retries and exact numbers.

async with connect("http://127.0.0.1:8080", credentials) as bankside:
    answer = await bankside.get_balance(GetBalance(account_id=account_id))
    print(answer.data.available_balance.amount)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar, overload
from urllib.parse import quote, urlencode
from uuid import uuid4

import aiohttp

from libs.backoff import Backoff, lengthened
from libs.client.answers import Answer, error_of, is_unknown, success_of, unanswered
from libs.client.credentials import Credentials
from libs.client.transport import TIMEOUT_SECONDS, NoAnswer, NotSent, Response, Transport
from libs.contracts import ledger_read_operations as ledger_read
from libs.contracts import onboarding_operations as onboarding
from libs.contracts import payments_operations as payments
from libs.contracts.errors import (
    BanksideError,
    IdempotencyInProgress,
    InternalError,
    NonceReused,
    RateLimited,
    Unavailable,
)
from libs.contracts.exact_json import encode
from libs.contracts.model import Command
from libs.contracts.operation import Operation
from libs.retry_after import retry_after

C = TypeVar("C", bound=Command)
R = TypeVar("R")

UNDER_WAY = (IdempotencyInProgress, NonceReused)
"""An earlier send may be carried out. Every send has a fresh nonce: only a copy of it, made on its way, used that."""
RETRIED = (Unavailable, RateLimited, *UNDER_WAY)
"""Errors after which a request may be sent again: nothing was started, or the first request will have its answer."""
OF_ONE_SEND = frozenset({401, 403, 408, 413, 415, 422})
"""Statuses of a refusal before the Idempotency-Key is looked at: they say nothing of an earlier send."""
RETRIES = Backoff(first_seconds=0.2, longest_seconds=30.0, jitter=0.25)
RETRY_AFTER_JITTER = 0.25
LONGEST_RETRY_AFTER = timedelta(days=1)


class Call(Generic[C, R]):
    """An operation as a method of the client."""

    def __init__(self, operation: Operation[C, R]) -> None:
        self.operation = operation

    @overload
    def __get__(self, client: None, owner: type[Client]) -> Call[C, R]: ...
    @overload
    def __get__(self, client: Client, owner: type[Client]) -> BoundCall[C, R]: ...
    def __get__(self, client: Client | None, owner: type[Client]) -> Call[C, R] | BoundCall[C, R]:
        return self if client is None else BoundCall(client, self.operation)


class BoundCall(Generic[C, R]):
    """Call it with the command. See `Client.call` for what it raises."""

    def __init__(self, client: Client, operation: Operation[C, R]) -> None:
        self._client = client
        self.operation = operation

    async def __call__(self, command: C, *, idempotency_key: str | None = None) -> Answer[R]:
        return await self._client.call(self.operation, command, idempotency_key=idempotency_key)


class Client:
    """Signs, sends, retries, decodes.

    Args:
        attempts: at most this many sends of one request.
        patience_seconds: no retry begins later than this after the first send.
    """

    onboard_customer = Call(onboarding.ONBOARD_CUSTOMER)
    update_business = Call(onboarding.UPDATE_BUSINESS)
    update_person = Call(onboarding.UPDATE_PERSON)
    add_external_bank_account = Call(onboarding.ADD_EXTERNAL_BANK_ACCOUNT)
    list_customers = Call(onboarding.LIST_CUSTOMERS)
    get_customer = Call(onboarding.GET_CUSTOMER)
    list_partner_accounts = Call(ledger_read.LIST_PARTNER_ACCOUNTS)
    get_account = Call(ledger_read.GET_ACCOUNT)
    get_balance = Call(ledger_read.GET_BALANCE)
    get_external_account = Call(ledger_read.GET_EXTERNAL_ACCOUNT)
    list_customer_accounts = Call(ledger_read.LIST_CUSTOMER_ACCOUNTS)
    list_external_accounts = Call(ledger_read.LIST_EXTERNAL_ACCOUNTS)
    list_statements = Call(ledger_read.LIST_STATEMENTS)
    list_ach_requests = Call(ledger_read.LIST_ACH_REQUESTS)
    list_transactions = Call(ledger_read.LIST_TRANSACTIONS)
    list_deposit_locations = Call(ledger_read.LIST_DEPOSIT_LOCATIONS)
    list_settlement_calculations = Call(ledger_read.LIST_SETTLEMENT_CALCULATIONS)
    send_wire = Call(payments.SEND_WIRE)
    list_wires = Call(payments.LIST_WIRES)
    get_wire = Call(payments.GET_WIRE)
    cancel_wire = Call(payments.CANCEL_WIRE)
    approve_wire = Call(payments.APPROVE_WIRE)
    decline_wire = Call(payments.DECLINE_WIRE)
    get_wire_policy = Call(payments.GET_WIRE_POLICY)
    set_wire_policy = Call(payments.SET_WIRE_POLICY)
    get_own_wire_policy = Call(payments.GET_OWN_WIRE_POLICY)

    def __init__(
        self, transport: Transport, *, attempts: int = 5, patience_seconds: float = 60.0
    ) -> None:
        self._transport = transport
        self._attempts = attempts
        self._patience_seconds = patience_seconds

    async def call(
        self, operation: Operation[C, R], command: C, *, idempotency_key: str | None = None
    ) -> Answer[R]:
        """Carry an operation out.

        A POST, PUT, PATCH or DELETE without an idempotency key gets a fresh one, so that its retries have one effect.

        Raises:
            Unavailable: nothing was started by any attempt: the gateway was not reached, or answered so.
            OutcomePending, ProviderTimeout: the outcome of the write or read is unknown, also after a 5xx that is not
                the gateway's, where a retry is refused by itself: the write may have been carried out by an earlier
                send, and after a success to a write that cannot be read.
            BanksideError: as the gateway answered.
        """
        method, target, headers, body = request_of(operation, command)
        if operation.takes_idempotency_key:
            # An empty one is the caller's mistake, which the gateway refuses: a fresh one in its place would be another
            # with each call.
            headers["Idempotency-Key"] = (
                str(uuid4()) if idempotency_key is None else idempotency_key
            )
        repeatable = operation.is_read or "Idempotency-Key" in headers
        give_up_at = time.monotonic() + self._patience_seconds
        lost: NoAnswer | None = None
        is_under_way = False
        for attempt in range(1, self._attempts + 1):
            failure: BanksideError
            try:
                return await self._attempt(operation, method, target, headers, body)
            except NoAnswer as error:
                lost, failure = error, unanswered(operation)
                failure.__cause__ = error
            except NotSent as error:
                failure = Unavailable("The gateway cannot be reached.", headers={})
                failure.__cause__ = error
            except RETRIED as error:
                failure = error
                is_under_way |= isinstance(error, UNDER_WAY)
            except BanksideError as error:
                may_be_done = not operation.is_read and (lost or is_under_way)
                if may_be_done and (
                    error.status in OF_ONE_SEND or isinstance(error, InternalError)
                ):
                    raise unanswered(operation) from error
                raise
            pause = _pause_seconds(attempt, failure)
            late = time.monotonic() + pause > give_up_at
            if attempt == self._attempts or late or ((lost or is_under_way) and not repeatable):
                break
            await asyncio.sleep(pause)
        is_told = operation.is_read or isinstance(failure, IdempotencyInProgress)
        if is_told or not (lost or is_under_way):
            raise failure
        # An earlier send may have been carried out.
        raise unanswered(operation) from lost or failure

    async def _attempt(
        self,
        operation: Operation,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer[Any]:
        response: Response = await self._transport.send(
            method, target, body, headers, TIMEOUT_SECONDS
        )
        if 200 <= response.status < 300:
            try:
                return success_of(operation, response)
            except InternalError as error:
                if operation.is_read:
                    raise
                raise unanswered(operation) from error
        if is_unknown(response):
            raise NoAnswer(f"{response.status}, which is not the gateway's")
        raise error_of(response)


def request_of(operation: Operation, command: Command) -> tuple[str, str, dict[str, str], bytes]:
    """Method, target, headers and body of a command: what was set of it, nothing else."""
    if operation.method is None or operation.path is None:
        raise ValueError(f"{operation.name} is not for callers")
    values = command.model_dump(exclude_unset=True)
    path = operation.path
    for name in operation.path_fields:
        path = path.replace(f"{{{name}}}", quote(str(values.pop(name)), safe=""))
    headers = {
        header: str(values.pop(name)) for name, header in operation.headers if name in values
    }
    if operation.is_read:
        query = urlencode({name: str(item) for name, item in values.items() if item is not None})
        return str(operation.method), f"{path}?{query}" if query else path, headers, b""
    body = encode(values) if operation.takes_body else b""
    return str(operation.method), path, headers, body


def _pause_seconds(attempt: int, failure: BanksideError) -> float:
    """The answer's Retry-After, else the backoff's; both with jitter."""
    now = datetime.now(UTC)
    until = retry_after(failure.headers.get("Retry-After"), now, LONGEST_RETRY_AFTER)
    if until is None:
        return RETRIES.pause_seconds(attempt)
    return lengthened((until - now).total_seconds(), RETRY_AFTER_JITTER)


@asynccontextmanager
async def connect(base_url: str, credentials: Credentials) -> AsyncIterator[Client]:
    """A client with connections of its own."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        yield Client(Transport(base_url, credentials, session))
