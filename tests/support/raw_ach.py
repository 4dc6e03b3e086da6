"""NACHA files line by line, with any content that another bank may write; only totals are computed."""

OURS, THEIRS, OPERATOR = "061199992", "02100002", "061000146"
COMPANY = "1234567890"


def header(entry_class="PPD", number=1, *, name="LARKSPUR TOOLING", service="200", bank=THEIRS, day="250603"):
    """A batch header."""
    head = f"5{service}{name:16}{'':20}{COMPANY}{entry_class:3}{'PAYMENT':10}{'':6}{day:6}   1{bank:8}{number:07}"
    return head.ljust(94)


def entry(code, account, cents, number, *, identification="INV1", name="LARKSPUR", addenda="0", routing=OURS):
    """An entry; `number` is that of its trace."""
    amount = cents if isinstance(cents, str) else f"{cents:010}"
    return f"6{code}{routing}{account:17}{amount}{identification:15}{name:22}  {addenda}{THEIRS}{number:07}"


def addenda(kind, text, number, sequence=1):
    """An addenda of an entry with its number: 05 and the like."""
    return f"7{kind}{text:80}{sequence:04}{number:07}"


def returned(code, original, number, *, death="", information=""):
    """Addenda 99."""
    return f"799{code:3}{original:15}{death:6}{THEIRS}{information:44}{THEIRS}{number:07}"


def changed(code, original, number, *, data="", refused=""):
    """Addenda 98; `refused` follows in a refusal of a notification."""
    return f"798{code:3}{original:15}{'':6}{THEIRS}{data:29}{refused:15}{THEIRS}{number:07}"


def international(cents, number, account, *, code="22"):
    """An entry of an IAT batch with its mandatory addenda."""
    head = f"6{code}{OURS}0007{'':13}{cents:010}{account:39}1{THEIRS}{number:07}"
    texts = {
        "10": f"ANN{'':18}{'':22}LARKSPUR TOOLING",
        "11": f"{'SOCIETE ORCHIDEE':35}RUE DE LA PAIX 1",
        "12": f"{'PARIS*FR':35}FR*75002\\",
        "13": f"{'BANQUE DE PARIS':35}01BNPAFRPP",
        "14": f"{'BILLFOLD':35}01{OURS}",
        "15": f"{'':15}1 MAIN STREET",
        "16": f"{'SPRINGFIELD*OH':35}US*45501\\",
    }
    return [head, *(f"7{kind}{text:84}{number:07}" for kind, text in texts.items())]


def totals(lines, *, is_advice=False):
    """The fields of a control record: count, hash, debits, credits."""
    entries = [line for line in lines if line[0] == "6"]
    amounts = [(line[1:3], line[27:39] if is_advice else line[29:39]) for line in entries]
    debits = [int(amount) for code, amount in amounts if amount.isdigit() and _is_debit(code)]
    credits_ = [int(amount) for code, amount in amounts if amount.isdigit() and not _is_debit(code)]
    banks = sum(int(line[3:11]) for line in entries if line[3:11].isdigit())
    return len(lines), banks % 10**10, sum(debits), sum(credits_)


def batch(head, *lines):
    """A batch: its header, its lines, its control."""
    is_advice = head[50:53] == "ADV"
    count, banks, debits, credits_ = totals(lines, is_advice=is_advice)
    if is_advice:
        control = f"8{head[1:4]}{count:06}{banks:010}{debits:020}{credits_:020}{'':19}{head[79:94]}"
    else:
        control = f"8{head[1:4]}{count:06}{banks:010}{debits:012}{credits_:012}{head[40:50]}{'':25}{head[79:94]}"
    return [head, *lines, control]


def raw_file(*batches, to=OURS, day="250603"):
    """A whole file of batches."""
    sums = [0, 0, 0, 0]
    for each in batches:
        for place, value in enumerate(totals(each[1:-1], is_advice=each[0][50:53] == "ADV")):
            sums[place] += value
    lines = [f"101 {to} {OPERATOR}{day}0600A094101{'BILLFOLD':23}{'FEDERAL RESERVE BANK':23}{'':8}"]
    lines += [line for each in batches for line in each]
    blocks = -(-(len(lines) + 1) // 10)
    count, banks, debits, credits_ = sums
    lines.append(f"9{len(batches):06}{blocks:06}{count:08}{banks % 10**10:010}{debits:012}{credits_:012}".ljust(94))
    lines += ["9" * 94] * (blocks * 10 - len(lines))
    return "\n".join(lines).encode("latin-1") + b"\n"


def _is_debit(code):
    return code[1] in "2468" if code[0] == "8" else code[1] >= "5"
