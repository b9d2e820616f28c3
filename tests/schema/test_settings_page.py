"""deploy/SETTINGS.md has the settings of the classes, each with a description."""

from __future__ import annotations

from deploy.settings_page import PAGE, page


def test_the_page_of_settings_is_what_the_classes_say() -> None:
    assert PAGE.read_text() == page(), "run `python -m deploy.settings_page`"
