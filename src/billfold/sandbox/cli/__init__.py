"""Commands of the operator of a sandbox: its clock, its forks and scenarios, its events."""
