"""The steps of a request through the gateway, in the order of the interface (§1).

route ─▶ announced size ─▶ headers, body, signature ─▶ networks of the key ─▶ nonce and rate ─▶ console's session
─▶ family, scope, role ─▶ Idempotency-Key, where the key requires one ─▶ media type, JSON, validation
─▶ command or query ─▶ reply
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple
from uuid import UUID

import msgspec
import structlog
from aiohttp import web
from prometheus_client import Counter
from uuid_utils import uuid7

from libs import tracing
from libs.batching import TooManyWaiting
from libs.contracts.binding import bind, require_our_ids
from libs.contracts.errors import (
    LOOK_BEFORE_REPEATING,
    Abandoned,
    AddressNotAllowed,
    BanksideError,
    ErrorDetail,
    IdempotencyInProgress,
    IdempotencyKeyRequired,
    IdempotencyKeyReused,
    InsufficientRole,
    InsufficientScope,
    InternalError,
    Invalid,
    OutcomePending,
    SessionEnded,
    Unauthenticated,
    Unavailable,
    WrongRouteFamily,
)
from libs.contracts.model import Command
from libs.contracts.operating.sessions import BROWSER_HEADER, SESSION_HEADER
from libs.contracts.operation import GATEWAY, Operation
from libs.contracts.principal import Family, Principal, Role
from libs.contracts.request_context import RequestContext, request_context
from libs.handling.handled import OK, conclude, note_handled
from libs.handling.metrics import INTERNAL_ERRORS
from libs.messaging.envelope import Envelope, Reply
from libs.messaging.request_deadlines import RequestDeadlines
from libs.messaging.service_client import ServiceClient
from libs.persistence.availability import is_away
from libs.persistence.sealing import LookupKeys
from libs.runtime.addresses import (
    address_of,
    counted_as,
    is_within,
    normal_form,
    parse_networks,
    parsed_address,
)
from libs.runtime.connections import CONNECTION
from services.gateway.admission import Admission
from services.gateway.authentication import Authentication, Signed, claimed_key
from services.gateway.bodies import Bodies
from services.gateway.credentials import CONSOLE, Credential
from services.gateway.failures import Failures
from services.gateway.last_use import LastUse
from services.gateway.login_repository import StoredSession
from services.gateway.logins import Logins
from services.gateway.operating.answering import Answering
from services.gateway.refusals import Refusals
from services.gateway.requests import (
    check_announced_size,
    check_media_type,
    command_id_of,
    idempotency_key_of,
    pending_without_key,
    request_id_of,
)
from services.gateway.responses import failure, success
from services.gateway.settings import Settings
from services.gateway.traffic import TrafficCounts

ADDRESS_NOT_ALLOWED = Counter(
    "bankside_gateway_address_not_allowed",
    "Requests with a correct signature, from an address that their key may not be used from.",
)

CANCELLED = "cancelled"
"""The outcome in the log of a request that had no answer when the process ended."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_OWNERS: dict[Family | None, str] = {
    Family.PARTNER: "a partner",
    Family.CUSTOMER: "a customer",
    Family.OPERATOR: "an operator",
}

_log = structlog.get_logger("gateway")


class _Asked(NamedTuple):
    """What is kept of a request's body and headers until the answer."""

    command: Command
    command_id: UUID
    has_key: bool
    """An Idempotency-Key."""
    body_hashes: Sequence[str]


class Endpoints:
    """Makes the handler of each row of the table."""

    def __init__(
        self,
        settings: Settings,
        authentication: Authentication,
        admission: Admission,
        failures: Failures,
        refusals: Refusals,
        last_use: LastUse,
        service_client: ServiceClient,
        deadlines: RequestDeadlines,
        lookup: LookupKeys,
        answering: Answering,
        logins: Logins,
        traffic: TrafficCounts,
    ) -> None:
        self._settings = settings
        self._authentication = authentication
        self._admission = admission
        self._failures = failures
        self._refusals = refusals
        self._last_use = last_use
        self._service_client = service_client
        self._deadlines = deadlines
        self._lookup = lookup
        self._answering = answering
        self._logins = logins
        self._traffic = traffic
        self._bodies = Bodies(settings.body_seconds)
        self._trusted = parse_networks(settings.trusted_proxies)

    def counted_peer(self, peer: str) -> str | None:
        """What connections from this address are counted under; None for those of a trusted proxy."""
        return None if is_within(peer, self._trusted) else counted_as(normal_form(peer))

    def handler(self, operation: Operation) -> Handler:
        INTERNAL_ERRORS.labels(operation.name)

        async def handle(request: web.Request) -> web.StreamResponse:
            started = time.perf_counter()
            request_id = request_id_of(request)
            outcome = OK
            # A connection's requests follow one another in one task.
            request_context.set(RequestContext(request_id, None))
            with self._span(operation, request) as span:
                try:
                    response = await self._respond(operation, request, request_id)
                except BanksideError as error:
                    outcome = error.code
                    response = failure(error, request_id)
                except asyncio.CancelledError:
                    note_handled(
                        "request_handled", operation.name, CANCELLED, time.perf_counter() - started
                    )
                    raise
                if span is not None:
                    span.set({"http.response.status_code": response.status})
                    conclude(span, operation.name, outcome)
            response.headers["X-Request-Id"] = request_id
            seconds = time.perf_counter() - started
            note_handled(
                "request_handled", operation.name, outcome, seconds, status=response.status
            )
            if operation.family is not Family.OPERATOR:
                self._traffic.note(response.status, seconds)
            return response

        return handle

    def _span(self, operation: Operation, request: web.Request) -> tracing.Spanning:
        """Without the path, in which a caller may have written anything."""
        if not tracing.is_drawn(self._settings.trace_ratio):
            return tracing.NOTHING
        method, route = str(operation.method), operation.path or ""
        traceparents = request.headers.getall("traceparent", ())
        return tracing.trace(
            f"{method} {route}",
            {"http.request.method": method, "http.route": route},
            traceparents[0] if len(traceparents) == 1 else None,
            ",".join(request.headers.getall("tracestate", ())),
        )

    async def _respond(
        self, operation: Operation, request: web.Request, request_id: str
    ) -> web.Response:
        deadline = time.time() + self._settings.deadline_seconds
        check_announced_size(request)
        rate_headers: dict[str, str] = {}
        try:
            # After the deadline it is 503: nothing was started.
            principal, body = await self._deadlines.within(
                deadline - time.time(),
                self._admit(operation, request, request_id, rate_headers),
                Unavailable,
            )
            asked = self._read(operation, request, body, principal)
            del body  # up to 256 KiB, which would be kept until the answer
            response = await self._carry_out(
                operation, request, request_id, asked, principal, deadline
            )
        except BanksideError as error:
            error.headers = {**rate_headers, **error.headers}
            raise
        except TooManyWaiting as error:
            raise Unavailable(headers={**rate_headers, "Retry-After": "1"}) from error
        except Exception as error:
            if is_away(error):
                raise Unavailable(headers={**rate_headers, "Retry-After": "1"}) from error
            _log.error("request_failed", operation=operation.name, exc_info=error)
            raise InternalError(headers=rate_headers) from error
        response.headers.update(rate_headers)
        return response

    async def _admit(
        self,
        operation: Operation,
        request: web.Request,
        request_id: str,
        rate_headers: dict[str, str],
    ) -> tuple[Principal, bytes]:
        """Who signed the request and may do what it asks, and its body, which is read only for headers of an active
        key.
        """
        caller_address = address_of(request, self._trusted)
        address = counted_as(caller_address)
        signed: Signed | None = None
        try:
            claim = await self._authentication.claim(request.headers)
            body = await self._bodies.read(request, (address, claim.credential.id))
            signed = await self._authentication.verify(
                claim,
                request.method,
                request.raw_path,
                body,
                anew=not self._failures.are_too_many(address),
            )
            request_context.set(RequestContext(request_id, signed.credential.principal.actor))
            _require_allowed(signed.credential, caller_address)
            rate = await self._admission.admit(signed, operation.rate_class)
            self._last_use.note(signed.credential.id)
            if (connection := request.get(CONNECTION)) is not None:
                connection.authenticated()
        except (Unauthenticated, AddressNotAllowed) as error:
            self._refusals.stranger(error, address, claimed_key(request.headers))
            self._failures.count(address)
            if signed is None:
                self._failures.check(address)
            raise
        rate_headers.update(rate.headers())
        principal, role = signed.credential.principal, signed.credential.role
        try:
            if signed.credential.is_console:
                principal = msgspec.structs.replace(principal, browser=_browser(request))
            if signed.credential.is_console and operation.role is not None:
                session = await self._session(request)
                principal = msgspec.structs.replace(principal, operator=session.operator)
                role = session.role
                request_context.set(RequestContext(request_id, principal.actor))
            _authorize(operation, signed.credential, role)
        except BanksideError as error:
            self._refusals.known(error, address, principal, operation.name)
            raise
        _require_idempotency_key(operation, signed.credential, request)
        if not operation.is_read:
            principal = msgspec.structs.replace(principal, address=caller_address)
            if operation.family is Family.OPERATOR:
                principal = msgspec.structs.replace(principal, request_id=request_id)
        return principal, body

    async def _session(self, request: web.Request) -> StoredSession:
        """Of the operator for whom a console asks. Raises SessionEnded."""
        sent = request.headers.getall(SESSION_HEADER, ())
        session = await self._logins.session(sent[0]) if len(sent) == 1 else None
        if session is None or session.enrolment:
            raise SessionEnded
        return session

    def _read(
        self, operation: Operation, request: web.Request, body: bytes, principal: Principal
    ) -> _Asked:
        check_media_type(operation, request, body)
        idempotency_key, errors = idempotency_key_of(operation, request)
        command = _bind(operation, request, body, errors)
        command_id = command_id_of(principal, request, idempotency_key)
        body_hashes = () if operation.is_query else self._body_hashes(command_id, body)
        return _Asked(command, command_id, idempotency_key is not None, body_hashes)

    async def _carry_out(
        self,
        operation: Operation,
        request: web.Request,
        request_id: str,
        asked: _Asked,
        principal: Principal,
        deadline: float,
    ) -> web.Response:
        if operation.service == GATEWAY:
            payload = await self._deadlines.within(
                None,
                self._answering.answer(operation, principal, asked.command, deadline),
                partial(_unanswered, operation),
            )
            return success(operation, payload)
        envelope = self._service_client.envelope(
            operation,
            principal,
            asked.command,
            command_id=str(asked.command_id),
            message_id=str(uuid7()),
            request_id=request_id,
            deadline=deadline,
            body_hashes=asked.body_hashes,
        )
        if operation.is_query:
            reply = await self._deadlines.within(
                None,
                self._service_client.send_query(envelope, is_read=operation.is_read),
                partial(_unanswered, operation),
            )
            return self._response(operation, reply)
        try:
            return await self._write(operation, envelope)
        except (OutcomePending, IdempotencyInProgress, IdempotencyKeyReused, Abandoned) as known:
            if not asked.has_key and isinstance(known, OutcomePending):
                known.detail = pending_without_key(operation)
            if (name := operation.pending_id) is not None:
                known.extra[name] = request.match_info.get(name, envelope.id)
            raise

    async def _write(self, operation: Operation, envelope: Envelope) -> web.Response:
        """Send a command and make the answer of its reply.

        Raises:
            OutcomePending: from the first byte on, for all that is neither a result nor an error of 4xx or 503 that a
                service decided: a fault of ours would have the caller send again what may have been carried out.
        """
        reply = await self._service_client.send_command(envelope)
        try:
            return self._response(operation, reply)
        except BanksideError as error:
            if error.status < 500 or isinstance(error, Unavailable | OutcomePending):
                raise
            reason: Exception = error
        except Exception as error:
            reason = error
        _log.error(
            "reply_unusable",
            operation=operation.name,
            code=reply.error.code if reply.error else None,
            exc_info=reason,
        )
        raise OutcomePending from reason

    def _body_hashes(self, command_id: UUID, body: bytes) -> list[str]:
        return [digest.hex() for digest in self._lookup.digests(f"body/{command_id}", body)]

    def _response(self, operation: Operation, reply: Reply) -> web.Response:
        if reply.error is not None:
            error = reply.error.to_error()
            if reply.replayed:
                error.headers["Idempotent-Replayed"] = "true"
                error.extra["request_id"] = reply.request_id
            raise error
        if operation.reply_shape or not reply.result:
            opened = self._service_client.open_result(operation, reply)
            response = success(operation, opened, reply.message)
        else:
            response = success(operation, bytes(reply.result), reply.message)
        if reply.replayed:
            response.headers["Idempotent-Replayed"] = "true"
        return response


def _unanswered(operation: Operation) -> BanksideError:
    """Of a query that is given up because the process stops."""
    return Unavailable() if operation.is_read else OutcomePending(LOOK_BEFORE_REPEATING)


def _require_idempotency_key(
    operation: Operation, credential: Credential, request: web.Request
) -> None:
    is_asked_for = operation.takes_idempotency_key and credential.requires_idempotency_key
    if is_asked_for and "Idempotency-Key" not in request.headers:
        raise IdempotencyKeyRequired


def _authorize(operation: Operation, credential: Credential, role: Role | None) -> None:
    if (family := credential.principal.family) is not operation.family:
        raise WrongRouteFamily(
            f"This route takes the key of {_OWNERS[operation.family]}; this one is that of {_OWNERS[family]}."
        )
    if operation.scope is not None and operation.scope not in credential.scopes:
        raise InsufficientScope(
            f"This operation needs the scope {operation.scope}.",
            extra={"scope": operation.scope},
        )
    if operation.for_console and not credential.is_console:
        raise InsufficientRole("This operation is a console's.", extra={"role": CONSOLE})
    if operation.role is not None and not (role is not None and role.includes(operation.role)):
        raise InsufficientRole(
            f"This operation needs the role {operation.role}.",
            extra={"role": operation.role},
        )


def _browser(request: web.Request) -> str | None:
    """Where the browser of the operator is for whom a console asks; None where it does not say so."""
    sent = request.headers.getall(BROWSER_HEADER, ())
    return parsed_address(sent[0]) if len(sent) == 1 else None


def _require_allowed(credential: Credential, address: str) -> None:
    """Called once the signature is verified: a caller who cannot sign learns nothing. Raises AddressNotAllowed."""
    networks = credential.allowed_networks
    if networks and not is_within(address, networks):
        ADDRESS_NOT_ALLOWED.inc()
        raise AddressNotAllowed(extra={"address": address})


def _bind(
    operation: Operation, request: web.Request, body: bytes, errors: list[ErrorDetail]
) -> Command:
    """The command of a request.

    Raises:
        Invalid: the errors of its headers and its values together.
        NotFound: an id in the path is none.
    """
    headers: dict[str, str] = {}
    for _, name in operation.headers:
        sent = request.headers.getall(name, [])
        if sent:
            headers[name] = sent[0]
        if len(sent) > 1:
            repeated = "the header is repeated"
            errors.append({"loc": ["header", name], "msg": repeated, "type": "value_error"})
    try:
        command = bind(operation, request.match_info, request.query.items(), headers, body)
    except Invalid as invalid:
        raise Invalid([*errors, *invalid.errors]) from None
    if errors:
        raise Invalid(errors)
    require_our_ids(operation, request.match_info)
    return command
