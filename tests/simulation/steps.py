"""What the steps of a seeded life share."""

from functools import wraps


def of_a_pocket(step):
    """A step about a pocket that is drawn for it; there is none before there is a pocket."""

    @wraps(step)
    def drawn(life, **fields):
        place = life._pocket()
        return None if place is None else step(life, place, **fields)

    return drawn
