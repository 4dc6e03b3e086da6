"""Shared by all pages: their appearance, headers and static files."""
