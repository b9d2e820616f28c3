"""Where deliveries may go: the rules for callback URLs and for the addresses behind them (interface §8)."""

from __future__ import annotations

from enum import Enum, auto

from libs.contracts.errors import Invalid, Unavailable
from services.webhook_dispatcher.adapters.allowance import Allowance
from services.webhook_dispatcher.adapters.callback_targets import Target, Unfit, target_of
from services.webhook_dispatcher.adapters.lookups import Lookups, NotLookedUp, NotResolved
from services.webhook_dispatcher.adapters.networks import is_public, parsed

PORTS = (443, 8443)
NOT_PUBLIC = "The host name does not resolve to public addresses, and to no others, within 5 s."
"""One sentence for all of these cases, so that it does not show which names the internal network has."""


class TargetClass(Enum):
    """Which addresses a callback URL may lead to."""

    PUBLIC = auto()
    """https to a host name: what is public, or in an allowed network."""
    NETWORKS = auto()
    """Anything else, by leave of the networks in the setting: nothing outside of them."""
    NAMED = auto()
    """A host entry of the setting names it: wherever it leads."""


class CallbackPolicy:
    """The same rules at creation and at every connection."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance

    def class_of(self, target: Target) -> TargetClass:
        """Raises Unfit: nothing can make this URL acceptable."""
        if self._allowance.names(target.host, target.port):
            return TargetClass.NAMED
        why_not = _why_not(target)
        if why_not is None:
            return TargetClass.PUBLIC
        if target.address is not None:
            if self._allowance.covers(target.address):
                return TargetClass.NETWORKS
        elif target.is_host_name and self._allowance.networks:
            return TargetClass.NETWORKS
        raise Unfit(why_not)

    def admits(self, target_class: TargetClass, address: str) -> bool:
        """Whether a URL of this class may lead to a resolved address, given in canonical form."""
        found = parsed(address)
        if found is None:
            return False
        match target_class:
            case TargetClass.PUBLIC:
                return is_public(found) or self._allowance.covers(found)
            case TargetClass.NETWORKS:
                return self._allowance.covers(found)
            case TargetClass.NAMED:
                return True


def _why_not(target: Target) -> str | None:
    if target.scheme != "https":
        return "The URL is not https."
    if target.port not in PORTS:
        return "The port is neither 443 nor 8443."
    if not target.is_host_name or "." not in target.host:
        return "The URL has no public host name; an address, in whatever form, is none."
    return None


class ResolvingCallbackUrls:
    """Looks at a callback URL as it is created.

    Args:
        lookups: not those of the poster, so that names which hang here delay no delivery.
    """

    def __init__(self, policy: CallbackPolicy, lookups: Lookups) -> None:
        self._policy = policy
        self._lookups = lookups

    async def check(self, url: str, tenant: str) -> None:
        """Return when deliveries of the tenant may go there as things are now.

        Raises:
            Invalid: they may not; names `callback_url` and why.
            Unavailable: the name could not be looked up by now.
        """
        try:
            await self._check(url, tenant)
        except Unfit as unfit:
            where = ["body", "callback_url"]
            raise Invalid([{"loc": where, "msg": str(unfit), "type": "value_error"}]) from None

    async def _check(self, url: str, tenant: str) -> None:
        target = target_of(url)
        target_class = self._policy.class_of(target)
        if target.address is not None:
            return  # its class follows from this address
        try:
            addresses = await self._lookups.addresses(target.host, tenant)
        except NotLookedUp:
            raise Unavailable from None  # not the name's fault, and nothing was started
        except NotResolved:
            raise Unfit(NOT_PUBLIC) from None
        if not all(self._policy.admits(target_class, address) for address in addresses):
            raise Unfit(NOT_PUBLIC)
