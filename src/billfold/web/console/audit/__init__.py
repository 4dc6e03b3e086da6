"""What was done in the name of a company, by whom, and whether it was allowed."""
