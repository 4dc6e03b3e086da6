"""Declarations of CLI commands and their shared parts."""
