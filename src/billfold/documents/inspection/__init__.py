"""Files are opened in a process that has little memory, little time and nothing to write to.

Owns what is looked for in PDFs and pictures, and the limits of whoever looks. A file that is too
much for these limits is refused like one that is found to be bad.
"""
