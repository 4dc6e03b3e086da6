"""Documents that people upload: of which type, for whom, and what the review made of them.

Owns their rows and what their types, names and contents must be. The files lie in the file store;
a review is decided by a flow. Never opens a file.
"""
