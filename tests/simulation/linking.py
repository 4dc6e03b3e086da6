"""Counterparties of the same bank in a simulated history: linked, renamed and unlinked."""

from tests.simulation.operating import of_a_pocket

from billfold.accounts.counterparties.commands import UpdateCounterparty


@of_a_pocket
def link(life, place):
    target = life._pocket()
    if len(life.linked) > life.wanted:
        return None
    portal = life.bank.books[target.customer].portals[target.portal]
    return life.add_counterparty(
        place.customer,
        "on_us",
        details={"account_number": portal.network_address},
        verification=None,
        target_customer_id=target.customer,
        target_pocket_id=target.id,
    )


def unlink(life):
    if not life.linked:
        return None
    customer, counterparty = life.random.choice(life.linked)
    return life.submit(
        UpdateCounterparty,
        customer,
        counterparty_id=counterparty,
        unlink=life.random.random() < 0.5,
        rename=True,
        display_name="X",
    )


LINKING = {"link": link, "unlink": unlink}
