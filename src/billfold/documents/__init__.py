"""Documents that customers upload: their type, owner and review.

Owns their rows and what their types, names and contents must be. The files lie in the file store;
a review is decided by a flow. Never opens a file.
"""
