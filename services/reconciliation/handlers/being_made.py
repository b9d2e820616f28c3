"""Records of customers that we do not know yet, because the command that makes them is still open."""

from __future__ import annotations

from collections.abc import Collection

from services.reconciliation.ports import Onboarding


async def being_made(
    onboarding: Onboarding, made: Collection[tuple[str, str]], deadline: float
) -> Collection[str]:
    """Those of the owners that have a record which a step of an open command has made. The end of the command records
    its id, by which its customer is known.

    Args:
        made: owners of records, none of them a customer of ours, with the idempotency keys under which the records
            were made.
    """
    if not made:
        return ()
    makers = await onboarding.holders(list({key for _, key in made}), deadline)
    ids = list({maker.customer_id for maker in makers.values()})
    customers = await onboarding.customers(ids, deadline)
    busy = {one.customer_id for one in customers.values() if one.command_open}
    return {owner for owner, key in made if key in makers and makers[key].customer_id in busy}
