"""What providers of tests promise about writes: what the sandbox does, but for the key memory."""

from __future__ import annotations

from libs.providers.writing import Capabilities

FOR_EVER = Capabilities(keys_remembered_seconds=None, longest_transit_seconds=60.0)
