"""Connection strings as users have them, each with what `ciphercost prove` must answer on a server that offers TLS.

In a query `{ca}` is the file of the server's authority, and `{none}` a file that does not exist.
"""

from __future__ import annotations

from typing import NamedTuple

CLEAR = "NOT ENCRYPTED: this string asks for no encryption"
COULD = "The server offers TLS, so it could have encrypted this connection"
WEAK = "ENCRYPTED NOW, but not enforced"
PATH = "whoever is in the path can turn it off"
UNVERIFIED = "ENCRYPTED, but the server's identity was not verified"
NAMELESS = "ENCRYPTED, but the server's name was not verified"
PROVEN = "ENCRYPTED, proven by every witness"
LOCAL = "a Unix-domain socket, an unencrypted local connection that no network sees"


class Case(NamedTuple):
    """A string's query, the exit status, texts of the answer, and variables of the environment."""

    query: str
    status: int
    texts: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


POSTGRESQL = (
    Case("sslmode=disable", 1, (CLEAR, COULD)),
    Case("sslmode=allow", 1, ("NOT ENCRYPTED: with sslmode=allow", "not enforced", PATH)),
    Case("sslmode=prefer", 1, (WEAK, PATH)),
    Case("sslmode=require", 0, (UNVERIFIED, "write sslmode=verify-full")),
    Case("sslmode=require&sslrootcert={ca}", 0, (NAMELESS,)),
    Case("sslmode=verify-ca&sslrootcert={ca}", 0, (NAMELESS,)),
    Case("sslmode=verify-full&sslrootcert={ca}", 0, (PROVEN,)),
    Case("sslrootcert={ca}", 1, (WEAK, "which is sslmode=prefer to libpq")),
    Case("sslrootcert=system", 1, ("signed by an unknown authority", "NOT PROVEN")),
    Case("sslmode=verify-full", 2, ("root.crt", "sslrootcert=system")),
    Case(
        "sslmode=require&ssl_max_protocol_version=TLSv1.2&application_name=shop&connect_timeout=3",
        0,
        ("TLSv1.2", UNVERIFIED, "application_name=shop: ignored", "connect_timeout=3: ignored"),
    ),
    Case(
        "host=localhost,127.0.0.1&sslmode=verify-full&sslrootcert={ca}", 0, ("1 of the 2 servers", "2 of the 2", PROVEN)
    ),
    Case("host=/var/run/postgresql", 1, (f"NOT ENCRYPTED: /var/run/postgresql: {LOCAL}",)),
    Case("", 1, (CLEAR, "PGSSLMODE=disable"), (("PGSSLMODE", "disable"),)),
    Case("", 0, (PROVEN, "PGSSLMODE=verify-full"), (("PGSSLMODE", "verify-full"), ("PGSSLROOTCERT", "{ca}"))),
    Case("sslcert=a.pem&sslkey=a.key", 2, ("sslcert a.pem: no such file",)),
    Case("channel_binding=require", 0, (PROVEN, "peer verified by channel binding")),
    Case("channel_binding=require&sslmode=disable", 2, ("no TLS connection to bind the login to",)),
    Case("sslnegotiation=direct", 2, ("libpq refuses it with a weaker sslmode than require",)),
    Case("sslmod=require", 2, ("unknown parameter 'sslmod'", "did you mean 'sslmode'")),
)
MYSQL = (
    Case("ssl-mode=DISABLED", 1, (CLEAR, COULD)),
    Case("ssl-mode=preferred&charset=utf8mb4", 1, (WEAK, PATH, "charset=utf8mb4: ignored")),
    Case("ssl-mode=REQUIRED", 0, (UNVERIFIED, "write ssl-mode=VERIFY_IDENTITY")),
    Case("ssl-mode=VERIFY_CA&ssl-ca={ca}", 0, (NAMELESS,)),
    Case("ssl-mode=VERIFY_IDENTITY&ssl-ca={ca}&tls-version=TLSv1.2", 0, ("TLSv1.2", PROVEN)),
    Case("ssl-mode=VERIFY_IDENTITY", 2, ("write ssl-ca=FILE",)),
    Case("socket=/run/mysqld/mysqld.sock", 1, (f"NOT ENCRYPTED: /run/mysqld/mysqld.sock: {LOCAL}",)),
    Case("ssl-cert=a.pem&ssl-key=a.key", 2, ("ssl-cert a.pem: no such file",)),
    Case("sslmode=require", 2, ("unknown parameter 'sslmode'", "did you mean 'ssl-mode'")),
)
MARIADB = (
    Case("ssl=0", 1, (CLEAR, COULD)),
    Case("ssl=1", 1, (WEAK, PATH)),
    Case("ssl=1&ssl-verify-server-cert=1&ssl-ca={ca}", 0, (PROVEN,)),
    Case("ssl-mode=DISABLED", 1, (CLEAR, COULD)),
)
FIREBIRD = (
    Case("wire_crypt=Disabled", 1, (CLEAR,)),
    Case("wire_crypt=Enabled", 1, (WEAK, PATH)),
    Case("wire_crypt=Required&charset=UTF8", 0, (PROVEN, "charset=UTF8: ignored")),
    Case("wire_cript=Required", 2, ("did you mean 'wire_crypt'",)),
)
ON_A_SERVER = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MARIADB, "firebird": FIREBIRD}
"""By engine; each on a server whose connections may be encrypted or not."""
WITHOUT_TLS = {
    "postgresql": (
        Case("sslmode=disable", 1, (CLEAR, "The server does not offer TLS")),
        Case("sslmode=prefer", 1, ("NOT ENCRYPTED: the server does not offer TLS",)),
        Case("sslmode=require", 1, ("does not offer TLS", "NOT PROVEN")),
    ),
    "mariadb": (
        Case("ssl-mode=DISABLED", 1, (CLEAR, "The server does not offer TLS")),
        Case("ssl=1", 1, ("NOT ENCRYPTED: the server does not offer TLS",)),
        Case("ssl-mode=REQUIRED", 1, ("does not offer TLS", "NOT PROVEN")),
    ),
}
"""By engine; each on a server that offers no TLS."""
DEMANDING = (
    Case("sslmode=allow", 1, (WEAK, PATH, "The server refuses unencrypted connections")),
    Case(
        "sslmode=verify-full&sslrootcert={ca}", 0, ("ENCRYPTED, proven by server and client", "it enforces encryption")
    ),
)
"""On a PostgreSQL that refuses unencrypted connections."""
