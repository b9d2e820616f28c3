"""Errors whose cause is outside of the code, each with a sentence for the operator."""

from __future__ import annotations


class Mistake(Exception):
    """The message is the one sentence to show: what is the matter, and what to do about it."""
