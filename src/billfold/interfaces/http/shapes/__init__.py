"""What both APIs show: one struct and one render function per noun."""
