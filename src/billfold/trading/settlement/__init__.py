"""Settlement with the custodian: instructions, what is confirmed of them, fails, and redemptions.

Owns the tables `settlement_instruction` and `settlement_difference`. Never reads or writes a message.
"""
