"""What the published runs could not show, computed from what was seen of them and from their repetition here. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ciphercost.model.study import StudyRecord
from ciphercost.studies import in_turn
from ciphercost.studies.costs import change
from ciphercost.studies.mysql_openssl import published

if TYPE_CHECKING:
    from ciphercost.studies import Study

NOT_SEEN = (
    "Of the measurements on MySQL (Kravtchuk, 2026; OpenSSL 1.1.1l, 3.0.19, 3.3.6, 3.4.4, 3.5.5 and 3.6.1) we saw design and conclusion but no "
    "figure, so only the conclusion is compared: 3.5 is faster than 3.0. Figures that we did not see are left out."
)
NOT_HERE = (
    "wolfSSL and OpenSSL 1.1.1 are not measured here: the servers' binaries need OpenSSL 3, and both others need a server that was built "
    "for them. As published for MariaDB, wolfSSL 5.8.4 is the fastest in point-select, and 1.1.1l is 17 % faster than wolfSSL in reconnecting."
)
NO_PLAIN_ARM = (
    "In what we saw of them no run is without TLS. Then neither publication can tell what TLS costs with any version, nor whether a difference "
    "between versions comes from TLS or from what else a server computes with OpenSSL, such as the password's hash at each login. Our method "
    "measures each version with TLS and without."
)
KEY_EXCHANGE = (
    "In what we saw of them neither says which key exchange, cipher suite or certificate was negotiated, or that any connection was checked. From 3.5 "
    "on, OpenSSL prefers X25519MLKEM768, which 1.1.1 and 3.0 don't know: a reconnect test with everyone's defaults may compare two key exchanges and "
    "call the difference a version's. Here all versions use the same one, and on MariaDB the newer one has a row of its own."
)


def findings(study: Study, record: StudyRecord) -> list[str]:
    """Findings of a few sentences each."""
    return [in_order(record), limits(study), NO_PLAIN_ARM, KEY_EXCHANGE, NOT_SEEN, NOT_HERE]


def in_order(record: StudyRecord) -> str:
    text = (
        "Nothing says that the versions took turns. Run one after the other, whatever changes on the machine meanwhile looks like a version. The MariaDB "
        "post ran on a laptop whose 6 cores 16 threads kept busy, so its clock frequency is one of these things. No figure that we saw has an interval."
    )
    widest = in_turn.widest(record)
    if widest is not None:
        text += f" Here the fastest run of one operation and version, compared with its slowest: {change(widest, 'queries/s')}."
    return text


def limits(study: Study) -> str:
    shares = published.shares(study)
    said = "; ".join(
        f"{name} at most {share:g} %, so at most {change(1 / (1 - share / 100)).removesuffix(' more')} apart"
        for name, share in shares.items()
    )
    return (
        f'The MariaDB post prints "up to", and each version below the same best library: {said}. No difference at all is within these limits, and so is '
        "one that matters; the post calls the differences between versions not drastic."
    )
