"""Agreements: what a company agrees to when it opens an account.

Owns the texts in force and their version. Never records who agreed to them.
"""

from billfold.domain.agreements.texts import Agreement, AgreementDocument, current_agreement

__all__ = ["Agreement", "AgreementDocument", "current_agreement"]
