"""Files that the bank made for a customer, and the temporary URLs by which they are downloaded.

Owns their rows, and their parts in the file store. Never makes a document, and never decides who may have one.
"""
