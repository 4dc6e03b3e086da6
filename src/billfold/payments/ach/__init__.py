"""ACH entries: the network's rules for them, and as they are kept and read.

Owns windows, return reasons, notifications of change, the review, and every read of an entry.
Never moves money and reads no file.
"""
