"""A signer that exists only in the sandbox, in a process of its own.

Owns the private key of the bank's wallet, in its own file: no other process reads it. Its policy is its own, too: it
signs transfers of known tokens up to its limits, and transactions of the wallet to itself that pay nothing.
"""
