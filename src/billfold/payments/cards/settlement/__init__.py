"""Settlement files of the card processor: what it settles with the bank for a date, record by record.

Owns the files' format and their tables, interchange and the processor's fees. Never decides about a Pocket: records
are booked by the commands of `authorizations`.
"""
