"""Files of all rails: outbound and inbound, with their states, reports and retries.

Owns the table `rail_file`. Never parses a file: each rail parses its own.
"""
