"""Lines are paired with what the ledger expects; breaks are opened, owned and closed."""
