"""What an operator knows about single days: closed, closing early, open after all.

Owns the overrides and the calendars made with them. Never decides what a day means.
"""
