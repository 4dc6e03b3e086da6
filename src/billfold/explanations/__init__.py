"""Explanations of what a read of the APIs shows: a status, a refusal, a settlement date, a fee, a hold, limits.

Owns no rows and no rule. An explanation begins with the read itself, so that who may not read a thing may not have it
explained, and takes its figures from the rules that decided. It tells neither what screening found nor which rule
against fraud applied: such a payment was "stopped by the bank's checks", and what compliance looks at is "in review".
"""
