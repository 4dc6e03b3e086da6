"""Verbs that cross nouns, pure: the rules of the money, and the commands that name them.

Owns every decision that moves money or bills. Never touches the database, HTTP or a clock.
"""
