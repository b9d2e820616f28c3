"""What Increase promises about writes."""

from __future__ import annotations

from libs.providers.writing import Capabilities

WRITES = Capabilities(keys_remembered_seconds=24 * 3600, longest_transit_seconds=60)
"""Increase does not say for how long it remembers a key. A day is what such interfaces remember at least. An object is
found by its key for ever. Refusals are not kept.
"""

CHANGES = Capabilities(None, WRITES.longest_transit_seconds, takes_keys=False)
"""Of what is changed by PATCH, which takes no keys: a change is looked up by reading what it is of."""
