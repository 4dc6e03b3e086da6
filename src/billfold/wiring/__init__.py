"""The only place that knows everybody: settings become a database, a bank, a server.

`partner_app` is what each worker of the https server calls, `Wiring` what the command line
stands on. Nothing else picks an adapter.
"""
