"""A dataset from its plan to its finished files: plan, ledger, media store, books, tables."""
