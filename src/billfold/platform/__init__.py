"""Kit: money, dates, calendars, clock, ids, paging, errors, settings, crypto and the database pool.

Owns what every layer needs and what no layer should write twice.
Never knows a pocket, a bill or HTTP: nothing here imports anything above it.
"""
