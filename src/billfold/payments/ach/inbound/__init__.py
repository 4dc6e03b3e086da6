"""Incoming ACH files: the form is checked of the whole file, then each entry is answered by itself."""
