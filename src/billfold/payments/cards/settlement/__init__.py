"""Settlement files of the card processor: its settlement with the bank for a date, record by record.

Owns the file format and its tables, interchange and the processor's fees. Never decides about a Pocket:
the commands of `authorizations` book the records.
"""
