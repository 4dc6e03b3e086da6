"""The command line of the house."""
