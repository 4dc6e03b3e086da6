"""Text: CSV, plain words for e-mails, and what never reaches a log."""
