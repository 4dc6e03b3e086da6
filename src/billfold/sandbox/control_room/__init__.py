"""The control room of a sandbox: its clock, forks, scenarios and simulations as pages.

Owns pages only. Each is a client of the Partner API's operations of the sandbox, in the same process and in the name
of the sandbox's partner. Served to browsers on the machine that runs the sandbox, to nobody else.
"""
