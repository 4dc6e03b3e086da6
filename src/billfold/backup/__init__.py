"""Backups of a bank with the embedded database, and their restore to any archived moment.

It never writes into a bank that is there. A PostgreSQL of the operator's own is backed up by its own tools.
"""
