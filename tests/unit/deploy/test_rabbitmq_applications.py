from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.rabbitmq import find_server
from deploy.local.rabbitmq_applications import MODULES, applications_of, link_applications


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """As RabbitMQ is laid out: a node that needs two libraries, one of them for the other, and a plugin."""
    root = tmp_path / "rabbitmq_server"
    for folder, needs in (
        ("rabbit-3.10.8", "kernel, rabbit_common,\n  ra"),
        ("rabbit_common-3.10.8", "kernel"),
        ("ra-2.2.0", "aten"),
        ("aten-0.5.8", ""),
        ("rabbitmq_management-3.10.8", "rabbit"),
    ):
        ebin = root / "plugins" / folder / "ebin"
        ebin.mkdir(parents=True)
        name = folder.partition("-")[0]
        (ebin / f"{name}.beam").touch()
        (ebin / f"{name}.app").write_text(
            f"{{application, {name}, [{{applications, [{needs}]}}]}}."
        )
    script = root / "sbin" / "rabbitmq-server"
    script.parent.mkdir()
    script.touch()
    return script


def names(folders: list[Path]) -> set[str]:
    return {folder.name.partition("-")[0] for folder in folders}


def test_what_the_node_needs_is_found_however_indirectly_and_no_plugin(server: Path) -> None:
    assert names(applications_of(server)) == {"rabbit", "rabbit_common", "ra", "aten"}


def test_the_server_of_this_machine_needs_its_own_and_no_plugin() -> None:
    installed = find_server()
    assert installed is not None

    found = names(applications_of(installed))

    assert {"rabbit", "rabbit_common", "rabbitmq_prelaunch", "ra"} <= found
    assert "rabbitmq_management" not in found


def test_links_are_to_what_is_there_now(server: Path, tmp_path: Path) -> None:
    folder = tmp_path / "applications"
    folder.mkdir()
    (folder / "rabbit-3.9.0").symlink_to(tmp_path)

    link_applications(server, folder)

    assert {link.name: link.resolve() for link in folder.iterdir() if link.is_symlink()} == {
        found.name: found for found in applications_of(server)
    }
    assert [made.name for made in folder.iterdir() if not made.is_symlink()] == [MODULES]
    assert tmp_path.is_dir()


def test_all_modules_that_the_node_needs_are_in_one_folder(server: Path, tmp_path: Path) -> None:
    """Those of Erlang itself among them, and of no plugin."""
    folder = tmp_path / "applications"

    link_applications(server, folder)

    linked = {module.stem: module for module in (folder / MODULES / "ebin").iterdir()}
    assert {"rabbit", "rabbit_common", "ra", "aten", "lists", "gen_tcp", "mnesia"} <= linked.keys()
    assert "rabbitmq_management" not in linked
    assert all(module.is_file() for module in linked.values())


def test_of_an_application_in_two_versions_no_module_is_taken(server: Path, tmp_path: Path) -> None:
    """Erlang takes the later one where it always looks."""
    ebin = server.parent.parent / "plugins" / "ra-2.10.0" / "ebin"
    ebin.mkdir(parents=True)
    (ebin / "ra.app").write_text("{application, ra, [{applications, []}]}.")
    folder = tmp_path / "applications"

    link_applications(server, folder)

    assert not (folder / MODULES / "ebin" / "ra.beam").exists()
    assert (folder / MODULES / "ebin" / "rabbit.beam").exists()


def test_without_any_there_is_no_folder(tmp_path: Path) -> None:
    """Another layout than the one we know: the server then looks where it always does."""
    folder = tmp_path / "applications"
    folder.mkdir()

    link_applications(tmp_path / "bin" / "rabbitmq-server", folder)

    assert not folder.exists()
