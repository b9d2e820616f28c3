"""deploy/SETTINGS.md has the settings of the classes, each with a description."""

from __future__ import annotations

import re

import pytest

from deploy.local.services import SERVICES
from deploy.settings_page import PAGE, page, settings_class, settings_of
from services.webhook_dispatcher.settings import Settings as Dispatcher


def test_the_page_of_settings_is_what_the_classes_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m deploy.settings_page`"


@pytest.mark.parametrize("service", [service.name for service in SERVICES])
def test_a_description_names_variables_rather_than_fields(service: str) -> None:
    fields = settings_class(service).model_fields

    for setting in settings_of(service).values():
        named = set(re.findall("`([a-z_]+)`", setting.description))
        assert not named & set(fields), setting.variable


def test_the_default_of_the_retry_schedule_can_be_set_as_it_is_shown() -> None:
    shown = settings_of("webhook_dispatcher")["retry_seconds"].default

    retry_seconds = Dispatcher.model_fields["retry_seconds"]
    assert tuple(float(pause) for pause in shown.strip("`").split(",")) == retry_seconds.default
