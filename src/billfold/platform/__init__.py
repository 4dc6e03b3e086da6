"""Foundations: money, dates, calendars, clock, ids, paging, errors, settings, crypto and the database pool.

Owns the code that every layer needs and that no layer should repeat.
Never knows a pocket, a bill or HTTP: nothing here imports anything above it.
"""
