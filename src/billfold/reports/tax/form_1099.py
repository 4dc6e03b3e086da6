"""Forms 1099-INT and 1099-B as documents for the recipient (Copy B), with the lots behind every box: pure."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Final, NamedTuple

from billfold.platform.dates import et_date
from billfold.platform.money import format_usd
from billfold.reports import printing
from billfold.reports.tax.rules import Filing, TaxForm, TaxLine, TaxYear, boxes_of
from billfold.reports.tax.store import Recipient

LINES_MAX: Final = 2_000
"""Maximum number of lot disposals printed one by one; if there are more, there is one line per bill."""
_NAMES: Final = {TaxForm.INTEREST: "Interest Income", TaxForm.BROKER: "Proceeds From Broker Transactions"}
_OMB_NUMBERS: Final = {TaxForm.INTEREST: "1545-0112", TaxForm.BROKER: "1545-0715"}
_COLUMNS: Final = printing.columns("Treasury bill+", "Acquired", "Disposed", "Par>", "Proceeds>", "Cost>")
_AFTER_COST: Final = {
    TaxForm.INTEREST: printing.columns("Interest>"),
    TaxForm.BROKER: printing.columns("Interest>", "Gain or loss>"),
}
_NOTICE: Final = {
    Filing.FILED: (
        "This is important tax information and is being furnished to the IRS. If you are required to file a return, a "
        "negligence penalty or other sanction may be imposed on you if this income is taxable and the IRS determines "
        "that it has not been reported."
    ),
    Filing.EXEMPT: "You are an exempt recipient: this form is for your records and is not furnished to the IRS.",
    Filing.FOREIGN: "Your identification number is not a United States one: this form is not furnished to the IRS.",
    Filing.BELOW_MINIMUM: (
        "Your interest of the year is below $10.00: this form is for your records and is not furnished to the IRS. "
        "Interest is to be reported however small it is."
    ),
}
_NOTES: Final = {
    TaxForm.INTEREST: (
        (
            "Box 3: interest on Treasury obligations is subject to federal income tax and exempt from state and local "
            "income taxes. Of a bill held to maturity it is par less cost, in the year in which the bill was paid; of "
            "a bill sold before, it is the part of the gain up to its straight-line share of the discount."
        ),
        (
            "Box 4: backup withholding, 24 % of the interest of bills that matured while you were subject to it. "
            "Include it as tax withheld on your return."
        ),
    ),
    TaxForm.BROKER: (
        (
            "Short-term transactions of noncovered securities (boxes 2 and 5): obligations of one year or less. Sales "
            "count on their trade date, whenever they settled. Proceeds (box 6) are gross."
        ),
        ("Box 1e is the cost with the interest that is reported on Form 1099-INT, so that nothing is counted twice."),
        (
            "Box 4: backup withholding, 24 % of the gross proceeds of sales while you were subject to it, their "
            "interest included. Include it as tax withheld on your return."
        ),
    ),
}


class FormIssue(NamedTuple):
    """Issuer and recipient of a form, its time, whether the IRS receives it, and the reason for a correction."""

    bank: printing.PrintedBank
    payer_tin: str
    recipient: Recipient
    address: Sequence[str]
    pocket: str
    filing: Filing
    made_at: datetime
    version: int = 1
    reason: str | None = None


def compose_form(form: TaxForm, year: TaxYear, issue: FormIssue) -> printing.PrintedDocument:
    """Return a Pocket's form of a calendar year. The lines of its table add up to its boxes."""
    made_on = et_date(issue.made_at)
    return printing.PrintedDocument(
        title=f"Form {form}",
        subtitle=f"{_NAMES[form]} {year.year}",
        reference=f"Copy B, for recipient · OMB No. {_OMB_NUMBERS[form]}",
        made_on=made_on,
        bank=issue.bank,
        recipient=issue.address,
        details=(
            ("Payer's TIN", issue.payer_tin),
            ("Recipient's TIN", issue.recipient.masked_tin),
            ("Account number", year.account),
            ("Pocket", printing.printed(issue.pocket)),
            ("Copy", "B, for recipient"),
            ("Form date", printing.printed_day(made_on)),
        ),
        correction="" if issue.reason is None else _correction(issue),
        summary=[
            (f"Box {name}" if name[0].isdigit() else name, format_usd(cents)) for name, cents in boxes_of(year, form)
        ],
        tables=(_lots(form, year),),
        notes=(*_NOTES[form], _NOTICE[issue.filing], "This is a substitute form (IRS Publication 1179)."),
    )


def _correction(issue: FormIssue) -> str:
    reason = printing.printed(issue.reason or "")
    return f"[X] CORRECTED. Version {issue.version} replaces every earlier form of this year. {reason}"


def _lots(form: TaxForm, year: TaxYear) -> printing.PrintedTable:
    lines = year.sales if form == TaxForm.BROKER else [line for line in year.lines if line.interest]
    rows = _one_by_one(lines) if len(lines) <= LINES_MAX else _by_bill(lines)
    width = len(_COLUMNS) + len(_AFTER_COST[form])
    return printing.PrintedTable(
        heading="Lots",
        columns=(*_COLUMNS, *_AFTER_COST[form]),
        rows=[row[:width] for row in rows],
        totals=("Total", "", "", *_amounts(lines))[:width],
    )


def _one_by_one(lines: Iterable[TaxLine]) -> Iterable[tuple[str, ...]]:
    for each in lines:
        disposal = each.disposal
        how = "" if disposal.redeemed else "sold "
        yield (disposal.cusip, _day(disposal.acquired_on), how + _day(disposal.disposed_on), *_amounts([each]))


def _by_bill(lines: Iterable[TaxLine]) -> Iterable[tuple[str, ...]]:
    by_bill: defaultdict[str, list[TaxLine]] = defaultdict(list)
    for each in lines:
        by_bill[each.disposal.cusip].append(each)
    for cusip, parts in by_bill.items():
        yield (f"{cusip}, {len(parts):,} parts", "various", "various", *_amounts(parts))


def _amounts(lines: Sequence[TaxLine]) -> tuple[str, ...]:
    disposals = [each.disposal for each in lines]
    return tuple(
        format_usd(sum(cents))
        for cents in (
            [each.par for each in disposals],
            [each.proceeds for each in disposals],
            [each.cost for each in disposals],
            [each.interest for each in lines],
            [each.gain for each in lines],
        )
    )


def _day(day: date) -> str:
    return f"{day:%m/%d/%y}"
