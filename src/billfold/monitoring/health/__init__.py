"""Whether the bank is well: what `billfold doctor` and the console of operators look at. Reads alone."""
