"""The mirror: the postings of accounts at a provider that has cursors but neither page numbers nor totals.

| module | concept |
|---|---|
| `store` | the tables, written page by page of the provider |
| `catching_up` | when the provider is read, by which process, and until when a caller waits |
| `pages` | a page by number, with its total and filters, out of the tables |
| `named` | postings that the provider's feed names, stored where no reading would come to them |
| `ledger` | a `Ledger` whose transactions come from the mirror |
"""
