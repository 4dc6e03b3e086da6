"""Freezes and movements of money under dual control: one operator proposes, another confirms.

It does not define what a freeze or a movement means: the commands of customers, Pockets, cards and payments do.
"""
