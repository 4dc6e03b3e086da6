"""The daily root: the bank's liabilities to every customer at the close of a day, signed as one hash.

Owns its trees and the proofs from them. Never publishes a day on which customers own more bills than are held.
"""
