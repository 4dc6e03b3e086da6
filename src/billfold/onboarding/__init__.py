"""Onboarding: agreements in force, and items that wait for a review by the bank."""
