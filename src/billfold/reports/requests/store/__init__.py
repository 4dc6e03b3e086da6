"""Rows of requests for reports and of the formats they are made in."""
