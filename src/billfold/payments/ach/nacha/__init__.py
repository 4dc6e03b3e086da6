"""NACHA files: ACH entries in records of 94 characters, read and written.

Owns the layout of every record and the control totals. Never decides whether an entry is accepted: a
file with an invalid format is refused; an invalid batch or entry is reported with its reason. Files
are streamed; only `read_file` holds one in memory.
"""
