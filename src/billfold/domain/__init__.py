"""Nouns of the house: types, rules, reads and writes, one folder each."""
