"""Scheduled jobs: work to do at an instant of the business clock, besides what holdings require.

Owns the table `scheduled_job`. Never knows what is to be done: `ledger/jobs/scheduler.py` runs the jobs.
"""
