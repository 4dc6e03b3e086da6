"""Who people, partners and operators are, how they prove it, and what they may do."""
