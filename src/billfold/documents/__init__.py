"""Documents that customers upload: their type, owner and review.

Owns their rows and the rules for their types, names and contents. The files are in the file store;
a flow decides a review. Never opens a file.
"""
