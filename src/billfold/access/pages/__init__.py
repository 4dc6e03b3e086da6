"""Pages on which people sign in, prove who they are, and decide what applications may do."""
