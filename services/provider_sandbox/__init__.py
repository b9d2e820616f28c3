"""The three providers, simulated: identity verification, core banking and a financial provider over one ledger."""
