"""Series: transfers on the days of a schedule, approved once.

Owns the runs of approved requests with a schedule. Each run is a transfer request like any other, made once for each
day of the rule. Never moves money, and never decides what a transfer may: the request of the run does.
"""
