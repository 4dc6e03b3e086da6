"""Freezes of customers, Pockets and cards under dual control: one operator proposes, another confirms.

It never decides what a freeze means: the commands of customers, Pockets and cards do.
"""
