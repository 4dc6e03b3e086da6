"""Pages on which people without an account fill in, review and submit an application that they are invited to."""
