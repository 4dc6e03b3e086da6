"""How commands of the command line are declared, and what they share."""
