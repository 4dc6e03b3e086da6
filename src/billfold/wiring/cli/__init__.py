"""Commands of the command line that no part of the bank owns."""
