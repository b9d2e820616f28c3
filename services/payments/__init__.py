"""Wires: each is sent exactly once, and what became of it is known for ever."""
