"""Compares what our services hold, what the providers hold and what callers were told. See README.md."""
