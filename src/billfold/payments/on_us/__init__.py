"""On-us transfers as they are read.

Owns every read of a transfer, waiting ones included. Never carries one out: that is a flow.
"""
