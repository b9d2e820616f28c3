"""Customers: onboarding, their updates, their external bank accounts, and who owns which account."""
