"""NACHA files: ACH entries as lines of 94 characters, read and written.

Owns the layout of every record and the sums that prove a file whole. Never decides whether an
entry is wanted: it takes all of a file or none of it. A file passes through line by line; only
`read_file` holds one whole, for whoever looks at small ones.
"""
