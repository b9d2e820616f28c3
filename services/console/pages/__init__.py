"""The pages, by subject: each is declared over the operations of the operator family."""
