"""Compares the books of our services, the books of the providers, and the answers to callers. See README.md."""
