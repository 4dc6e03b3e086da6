"""The only package that depends on all others: turns settings into a database, a bank, a server.

Each worker of the https server calls `partner_app`; `Wiring` is the context of the command line.
No other code picks an adapter.
"""
