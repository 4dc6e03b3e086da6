"""Files are opened in a process that has little memory, little time and nothing to write to.

Owns the checks of PDFs and images, and the limits of the process that runs them. A file that is too
much for these limits is refused like one that is found to be bad.
"""
