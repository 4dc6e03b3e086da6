"""Reports that are requested, and statements and tax forms that are there."""
