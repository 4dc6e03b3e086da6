"""`billfold bench peers`: other ledgers, driven through their own HTTP APIs beside a transfer of ours."""
