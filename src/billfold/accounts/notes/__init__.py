"""Notes: an integrator's own id and metadata of Pockets, portals, counterparties, payments and cards.

Rows are written with the commands of their objects (`ledger/book/notes.py`). It never reads or changes the objects.
"""
