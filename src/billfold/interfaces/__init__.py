"""Doors for people and programs: HTTP, the command line and what comes back from rails."""
