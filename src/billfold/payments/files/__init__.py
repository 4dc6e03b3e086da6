"""What all rails share: the files that go out and come in, and what became of them.

Owns the table `rail_file`. Never reads what a file says: that is the rail's own work.
"""
