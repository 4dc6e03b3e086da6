"""The control room of a sandbox: its clock, forks, scenarios and simulations as pages.

Owns only pages. Each is a client of the Partner API's sandbox operations, in the same process and in the name
of the sandbox's partner. Served only to browsers on the machine that runs the sandbox.
"""
