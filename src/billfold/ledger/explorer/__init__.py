"""The log as it stands, read by operators: commits, their entries, postings, events and links of the chain."""
