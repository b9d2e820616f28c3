"""The wire policies in force: what partners have set for their customers, within what the operator allows."""

from __future__ import annotations

from datetime import datetime

from libs.persistence.async_engine import AsyncConnection
from services.payments.models import WireRecord
from services.payments.policies import NO_POLICY, NOTHING_USED, Policy
from services.payments.repository import policies
from services.payments.repository.policies import StoredPolicy


class EffectivePolicies:
    """The policies in force: customers' own or the defaults, within the ceilings.

    Args:
        defaults: for customers without a policy.
        ceilings: which no limit is above.
        approval_business_days: a wire that was not decided on is canceled after this many.
    """

    def __init__(
        self,
        defaults: Policy = NO_POLICY,
        ceilings: Policy = NO_POLICY,
        *,
        approval_business_days: int = 5,
    ) -> None:
        self._defaults = defaults.within(ceilings)
        self.ceilings = ceilings
        self.approval_business_days = approval_business_days

    @property
    def bind_everyone(self) -> bool:
        """Whether customers without a policy have limits, too."""
        return not self._defaults.is_empty

    def in_force(self, stored: StoredPolicy | None) -> Policy:
        return stored.policy.within(self.ceilings) if stored else self._defaults

    async def require_within_limits(
        self, connection: AsyncConnection, wire: WireRecord, now: datetime
    ) -> Policy:
        """The policy for the wire, under the lock of `policies.lock_limits`.

        Raises:
            LimitExceeded: the wire is beyond a limit.
        """
        stored = await policies.find(connection, wire.tenant, wire.customer_id)
        policy = self.in_force(stored)
        used = NOTHING_USED
        if policy.has_daily_limits:
            used = await policies.usage(
                connection, wire.tenant, wire.customer_id, now, beside=wire.transaction_id
            )
        policy.require_within_limits(wire.amount, used)
        return policy
