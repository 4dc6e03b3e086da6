"""A real chain on this machine: py-evm behind JSON-RPC, in a separate process, with a test token.

`TestToken.bin` is `vyper -f bytecode --evm-version paris TestToken.vy` (vyper 0.4.3).
"""
