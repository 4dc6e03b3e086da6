"""Backups of a bank with the embedded database, and their restore to any archived moment.

It never overwrites an existing bank. An operator's own PostgreSQL is backed up with its own tools.
"""
