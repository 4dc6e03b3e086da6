"""The embedded PostgreSQL server and the programs of its wheel."""
