"""Policies: what the members of a customer may pay, as one versioned document of rules in CEL with their tests.

Owns the document, its conditions and the decision about one payment. Only ever tightens what approval rules decide, and
never decides who may change it: approval rules and reviews of authorization requests do.
"""
