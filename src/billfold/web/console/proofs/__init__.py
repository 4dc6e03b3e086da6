"""Daily roots: what the bank has signed of a day, and a company's own proof."""
