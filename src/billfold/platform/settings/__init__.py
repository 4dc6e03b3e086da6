"""Settings: read once from `BILLFOLD_*` variables, validated together, documented from their declaration."""
