"""A bank that behaves as Increase documents, for tests and local stacks: see README.md."""
