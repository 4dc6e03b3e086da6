"""The frame of every page: how it looks, its headers, its static files."""
