"""Wires: each is sent exactly once, and its outcome is kept for ever."""
