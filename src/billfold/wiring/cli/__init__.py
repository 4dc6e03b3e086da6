"""The command `billfold`: runs the bank, looks after it, and says what to do next."""
