"""Statements as another bank, a custodian and a dealer write them."""

import re

_CAMT = """<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:{version}"><{root}><GrpHdr><MsgId>M</MsgId>\
<CreDtTm>{day}T22:00:00Z</CreDtTm></GrpHdr><{kind}><Id>S</Id><CreDtTm>{day}T22:00:00Z</CreDtTm>
<Acct><Id><Othr><Id>{account}</Id></Othr></Id></Acct>
{balances}{entries}</{kind}></{root}></Document>"""
_BALANCE = (
    '<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp><Amt Ccy="USD">{amount}</Amt>'
    "<CdtDbtInd>{sign}</CdtDbtInd><Dt><Dt>{day}</Dt></Dt></Bal>\n"
)
_ENTRY = (
    '<Ntry><NtryRef>{reference}</NtryRef><Amt Ccy="{currency}">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd>'
    "<Sts><Cd>{status}</Cd></Sts><BookgDt><Dt>{day}</Dt></BookgDt><ValDt><Dt>{day}</Dt></ValDt>"
    "<BkTxCd><Prtry><Cd>{code}</Cd></Prtry></BkTxCd></Ntry>\n"
)
_HELD = (
    "<BalForAcct><AggtBal><ShrtLngInd>LONG</ShrtLngInd><Qty><Qty><Qty><FaceAmt>{face}</FaceAmt></Qty></Qty></Qty>"
    "</AggtBal><FinInstrmId><OthrId><Id>{cusip}</Id><Tp><Cd>CUSP</Cd></Tp></OthrId></FinInstrmId></BalForAcct>\n"
)
_SEMT = """<Document xmlns="urn:iso:std:iso:20022:tech:xsd:semt.002.001.11"><SctiesBalCtdyRpt><StmtGnlDtls>
<StmtDtTm><Dt>{day}</Dt></StmtDtTm></StmtGnlDtls><SfkpgAcct><Id>{account}</Id></SfkpgAcct>
{held}</SctiesBalCtdyRpt></Document>"""
BOMB = b'<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><Document>&b;</Document>'
RESERVE, SAFE = "061000146-7", "SAFE-1"


def dollars(cents):
    return f"{abs(cents) // 100}.{abs(cents) % 100:02}"


def sign_of(cents):
    return "CRDT" if cents >= 0 else "DBIT"


def entry(cents, day, reference="NONREF", *, code="", currency="USD", status="BOOK"):
    """Return a booked entry, negative if it leaves the account."""
    named = {"amount": dollars(cents), "sign": sign_of(cents), "day": day, "reference": reference}
    return _ENTRY.format(code=code, currency=currency, status=status, **named)


def camt053(day, entries, *, opening=0, closing=None, account=RESERVE, within=False):
    """Return the statement of a day; `within` it, the report."""
    total = sum(
        round(float(amount) * 100) * (1 if sign == "CRDT" else -1)
        for amount, sign in re.findall(r'Ccy="USD">([\d.]+)</Amt><CdtDbtInd>(\w+)<', "".join(entries))
    )
    ends = opening + total if closing is None else closing
    balances = "".join(
        _BALANCE.format(code=code, amount=dollars(cents), sign=sign_of(cents), day=day)
        for code, cents in (("OPBD", opening), ("CLBD", ends))
    )
    names = ("camt.052.001.08", "BkToCstmrAcctRpt", "Rpt") if within else ("camt.053.001.08", "BkToCstmrStmt", "Stmt")
    version, root, kind = names
    shape = {"version": version, "root": root, "kind": kind, "day": day, "account": account}
    return _CAMT.format(balances=balances, entries="".join(entries), **shape).encode()


def semt002(day, units, *, account=SAFE):
    """Return the custodian's holdings, in units by CUSIP."""
    held = "".join(_HELD.format(cusip=cusip, face=count * 100) for cusip, count in units.items())
    return _SEMT.format(day=day, account=account, held=held).encode()


def recap(*trades, columns="dealer,reference,side,cusip,face,price,money,traded_at,settles_on"):
    """Return a dealer's recap of trades."""
    return "\n".join([columns, *(",".join(map(str, each)) for each in trades), ""]).encode()
