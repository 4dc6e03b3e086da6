"""Operations on policies: read, checked, tried on past payments, proposed, and put back.

Never puts a policy in force: the approval of an authorization request does.
"""
