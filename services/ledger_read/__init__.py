"""Reads accounts, balances and linked external accounts at the financial provider; reports what happens to accounts."""
