"""Rows of onboarding's tables, as little as a test needs of them."""

from __future__ import annotations

import uuid

from sqlalchemy import insert

from libs.persistence.engine import Database
from services.onboarding.tables import customers


async def a_customer(database: Database) -> uuid.UUID:
    """An approved one of the tenant `t`."""
    customer_id = uuid.uuid4()
    async with database.transaction() as connection:
        await connection.execute(
            insert(customers).values(
                customer_id=customer_id,
                tenant="t",
                saga_id=uuid.uuid4(),
                status="approved",
                business={},
                ein_last_four="0001",
            )
        )
    return customer_id
