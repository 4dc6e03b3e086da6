"""The state of one customer in memory, and the rows a batch writes for it."""
