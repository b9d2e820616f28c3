"""The page that shows the document."""

import re

from libs.specs import swagger


def test_the_page_loads_only_what_is_vendored() -> None:
    loaded = re.findall(rb'(?:src|href)="([^"]+)"', swagger.page())

    assert {name.decode().removeprefix("docs/") for name in loaded} == set(swagger.CONTENT_TYPES)


def test_every_asset_is_there() -> None:
    for name, content_type in swagger.CONTENT_TYPES.items():
        content, given_type = swagger.asset(name) or (b"", "")

        assert content
        assert given_type == content_type


def test_the_vendored_script_is_of_the_version_that_is_noted() -> None:
    script, _ = swagger.asset("swagger-ui-bundle.js") or (b"", "")

    assert swagger.VERSION.encode() in script


def test_nothing_but_the_assets_is_served() -> None:
    assert swagger.asset("__init__.py") is None
    assert swagger.asset("../openapi.py") is None
