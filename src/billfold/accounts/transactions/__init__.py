"""What customers see of the money that moved through their bank accounts.

Owns every read of activity, sweeps included. Never writes any: the engine does, in the commit
of the journal the activity tells about.
"""
