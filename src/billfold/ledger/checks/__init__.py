"""What `verify` proves of the ledger."""
