"""The agreements in force, which an administrator reads and accepts for a company."""
