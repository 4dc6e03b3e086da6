"""Everything that the bank talks to and does not run itself: each misbehaves at the rate of the faults."""
