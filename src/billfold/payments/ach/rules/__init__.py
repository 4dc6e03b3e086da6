"""Pure rules of ACH entries: originate, review, reverse, reinitiate, receive, return, settle."""
