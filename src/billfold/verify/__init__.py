"""`billfold verify`: recomputes everything from the log, and reports the first bad row."""
