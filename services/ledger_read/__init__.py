"""Reads accounts and what is in their ledger at the financial provider; reports what happens to them."""
