"""The outside world made real or simulated; only the wiring chooses among these."""
