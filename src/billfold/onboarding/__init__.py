"""Onboarding: agreements in force, and what waits for a review by the bank."""
