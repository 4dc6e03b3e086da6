"""Money that moved through bank accounts, as customers see it.

Owns every read of activity, sweeps included. Never writes any: the engine does, in the commit
of the journal entry behind the activity.
"""
