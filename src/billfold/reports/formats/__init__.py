"""Machine-readable formats of account statements, each written entry by entry.

Every format shows the same statements and the same entries; none adds or omits a figure. Nothing here reads
the database: the input is what `entries` has read.
"""
