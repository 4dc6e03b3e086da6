"""Deposits: incoming money from any rail, credited to the pocket it names."""
