"""What is done on a chain: nonces are reserved, transactions signed and sent, watched until they are final, reported.

Every step is in the database before the next one begins, and may be done again by whoever goes on after a crash.
"""
