"""The properties by which a JDBC driver presents a client's certificate: the PKCS#12 key store that holds it, and its password."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from ciphercost.model.errors import UsageError
from ciphercost.model.secret import Secret, reveal


class KeyStore(NamedTuple):
    """A family's names of the properties. `kind`: of the store's type; empty: it is known by its name."""

    file: str
    password: str
    kind: str = ""
    by_url: bool = False
    """Whether the file is named by a URL."""


KEY_STORES: Mapping[str, KeyStore] = MappingProxyType(
    {
        "connector-j": KeyStore(
            "clientCertificateKeyStoreUrl",
            "clientCertificateKeyStorePassword",
            "clientCertificateKeyStoreType",
            by_url=True,
        ),
        "mariadb": KeyStore("keyStore", "keyStorePassword", "keyStoreType"),
        "pgjdbc": KeyStore("sslkey", "sslpassword"),
    }
)
"""By family of drivers. The others have none."""


def properties(family: str, title: str, store: str, password: Secret | None) -> dict[str, str]:
    """The properties for the key store at this path; none if it is empty. `title`: of the family. Raises UsageError. Pure."""
    if not store:
        return {}
    if family not in KEY_STORES:
        raise UsageError(f"{title} presents no client certificate; remove --cert and --key")
    names = KEY_STORES[family]
    path = Path(store).absolute()
    store_properties = {names.file: path.as_uri() if names.by_url else str(path), names.password: reveal(password)}
    return store_properties | ({names.kind: "PKCS12"} if names.kind else {})
