"""Shared by all HTTP APIs: errors, headers, authentication and rendering."""
