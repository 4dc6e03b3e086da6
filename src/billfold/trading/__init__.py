"""The trading desk: the bank covers its customers' trades with dealers.

Owns exposure, orders, quotes, executions and the bank's inventory of bills. Never changes a customer's book.
"""
