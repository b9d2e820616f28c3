"""The pages as a web application."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from libs.contracts.operating.search import SEARCH
from libs.runtime.addresses import parse_networks
from libs.runtime.connections import Connections
from libs.runtime.routes import Routes
from services.console.acting import Actions
from services.console.assets import Assets
from services.console.cookies import Cookies
from services.console.declarations import Subject
from services.console.details import Details
from services.console.errors import as_pages
from services.console.gateway import Gateway
from services.console.lists import Lists
from services.console.logging_in import LoggingIn
from services.console.overview import OverviewPage
from services.console.pages import (
    audit,
    commands,
    customers,
    dead_letters,
    differences,
    feeds,
    keys,
    operators,
    restores,
    webhooks,
    wire_policies,
    wires,
)
from services.console.rendering import Renderer
from services.console.searching import Searching
from services.console.security import headers, same_origin_only
from services.console.sessions import Sessions, logged_in
from services.console.settings import Settings

LARGEST_FORM = 64 * 1024

SUBJECTS: tuple[tuple[str, tuple[Subject, ...]], ...] = (
    ("Business", (customers.SUBJECT, wires.SUBJECT, wire_policies.SUBJECT)),
    ("Webhooks", (webhooks.SUBJECT, webhooks.DELIVERIES_SUBJECT, webhooks.EVENTS_SUBJECT)),
    ("Books", (differences.SUBJECT, differences.RUNS_SUBJECT)),
    (
        "Work",
        (
            commands.SUBJECT,
            customers.SAGA_STEPS,
            dead_letters.SUBJECT,
            feeds.SUBJECT,
            restores.SUBJECT,
        ),
    ),
    ("Access", (keys.SUBJECT, operators.SUBJECT, audit.SUBJECT)),
)
"""The navigation."""


def build_application(
    settings: Settings,
    gateway: Gateway,
    connections: Connections,
    subjects: Sequence[tuple[str, Sequence[Subject]]] = SUBJECTS,
) -> web.Application:
    secret = settings.operator_secret.get_secret_value().encode()
    cookies = Cookies(encrypted=settings.is_encrypted, secret=secret)
    proxies = parse_networks(settings.trusted_proxies)
    assets = Assets()
    sessions = Sessions(gateway, cookies, proxies)
    renderer = Renderer(subjects, cookies, assets, SEARCH)
    application = web.Application(
        middlewares=[
            connections.middleware,
            as_pages(renderer),
            same_origin_only(settings.origins),
            logged_in(sessions, cookies),
        ],
        client_max_size=LARGEST_FORM,
    )
    application.on_response_prepare.append(headers(encrypted=settings.is_encrypted))
    application.on_response_prepare.append(connections.close_when_draining)
    routes = Routes(application.router)
    routes.add_get("/static/{name}", assets.get)
    LoggingIn(gateway, sessions, renderer, cookies, proxies).add(routes)
    OverviewPage(renderer).add(routes)
    Searching(renderer).add(routes)
    _add_pages(routes, [subject for _, group in subjects for subject in group], renderer, cookies)
    routes.add_unknown()
    return application


def _add_pages(
    routes: Routes,
    subjects: Sequence[Subject],
    renderer: Renderer,
    cookies: Cookies,
) -> None:
    """Actions before items: `/keys/create` is no key."""
    details = {detail.path: detail for subject in subjects for detail in subject.details}
    acting = Actions(renderer, cookies, details)
    for action in dict.fromkeys(action for subject in subjects for action in subject.actions()):
        acting.add(routes, action)
    for subject in subjects:
        Lists(renderer).add(routes, subject.page)
    for detail in details.values():
        Details(renderer).add(routes, detail)
