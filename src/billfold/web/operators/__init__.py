"""The pages of the bank's operators: health, reviews, ledger, rails, treasury desk."""
