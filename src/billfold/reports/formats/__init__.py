"""Statements of accounts in the formats that programs read, each written entry by entry.

Every format shows the same statements and the same entries; none adds or leaves out a figure. Nothing here reads
the database: what is written is what `entries` has read.
"""
