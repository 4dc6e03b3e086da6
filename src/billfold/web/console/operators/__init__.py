"""The pages of the bank's operators: its health, its reviews, its ledger, its rails, its desk."""
