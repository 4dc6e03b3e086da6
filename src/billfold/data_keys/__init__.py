"""The encryption of personal data: one data key for each customer, itself encrypted with the bank's master key.

Owns the table `data_key`, the keys in memory and the adapters of the master key. Never knows what is sealed: code
that stores personal data seals it with the key of its customer and opens it where it leaves the bank.
"""
