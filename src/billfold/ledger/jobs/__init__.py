"""Scheduled jobs: work to do at an instant of the business clock, besides what holdings require.

Owns the table `scheduled_job`. What a job does is up to its runner, which the wiring names.
"""
