"""Queries about wires, scoped by the principal."""

from __future__ import annotations

from libs.contracts.errors import NotFound, Unavailable
from libs.contracts.ids import id_of
from libs.contracts.operation import PageInfo
from libs.contracts.principal import Principal
from libs.contracts.result import Result
from libs.contracts.wires import GetWire, ListWires
from libs.persistence.engine import Database
from services.payments.repository import lists, sends, wires
from services.payments.views import wire_view


class Queries:
    """Deadlines are the caller's to keep. The database bounds each statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get_wire(self, principal: Principal, command: GetWire, _: float) -> Result:
        transaction_id = id_of(command.transaction_id)
        async with self._database.transaction() as connection:
            wire = await wires.find(connection, principal, transaction_id)
            if wire is None:
                if await sends.is_open(connection, principal, transaction_id):
                    raise Unavailable("The wire is accepted, and not recorded yet.")
                # It may have been recorded, and its command have ended, since the first look.
                wire = await wires.find(connection, principal, transaction_id)
        if wire is None:
            raise NotFound
        return Result(data=wire_view(wire))

    async def list_wires(self, principal: Principal, command: ListWires, _: float) -> Result:
        async with self._database.snapshot() as connection:
            found, total = await lists.page(connection, principal, command)
        return Result(
            data=[wire_view(wire) for wire in found],
            pagination=PageInfo(limit=command.limit, total=total, page=command.page),
        )
