"""`billfold verify`: recomputes everything from the log, and names the first bad row."""
