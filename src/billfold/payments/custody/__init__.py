"""Custody: bills received from and delivered to other custodians, free of payment.

Owns the table `security_transfer` and its commands. Never prices a bill.
"""
