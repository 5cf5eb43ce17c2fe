"""verify: Does a driver verify the server? An impostor and another host name are put in its way."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from ciphercost.host import versions
from ciphercost.host.impostor import Impostor, Speech
from ciphercost.host.relay import Relay
from ciphercost.load.jdbc.drivers import Driver
from ciphercost.model.errors import AgentError

OTHER_NAME = "127.0.0.2"
"""An address of this machine that stands in no certificate."""
MOST_SHOWN = 400


Call = Callable[..., str]
"""`call(port, host)`: connect by this way; the reason why it failed, or nothing."""


def refuses_impostor(
    speech: Speech, host: str, port: int, place: Path, call: Call, kind: str = "rsa2048", name: str = ""
) -> tuple[bool, str]:
    """Whether a driver refuses a certificate that nobody has vouched for, and in words. `kind`: of its key."""
    with (
        tempfile.TemporaryDirectory(dir=place) as own,
        Impostor(speech, host, port, Path(own) / "impostor", certificate=kind, name=name) as impostor,
    ):
        reason = call(impostor.port)
    met = impostor.met
    if "accepted" in met:
        return False, "an impostor with a certificate of its own is accepted"
    if "clear" in met:
        return False, "an impostor is sent the login in clear"
    if met and set(met) == {"refused"} and reason:
        return True, "an impostor with another CA's certificate is refused"
    return False, f"whether an impostor is refused could not be told ({reason[:MOST_SHOWN] or 'it was let in'})"


def refuses_other_name(host: str, port: int, call: Call) -> tuple[bool, str]:
    """Whether the real server is refused under a name that isn't in its certificate, though by its address it is let in."""
    with Relay(host, port, listen=OTHER_NAME) as other:
        reason = call(other.port, OTHER_NAME)
    return (True, "and so is another name") if reason else (False, "the server under another name is not")


def hint(driver: Driver, error: AgentError) -> str:
    """What to do where a driver can't connect. Pure."""
    text, old = str(error), driver.family == "connector-j" and versions.version_key(driver.version) < (5, 1, 44)
    if old and (error.code == "tls" or "TrustManager" in text):
        return (
            ". It offers TLS 1.0 at most, which Java has switched off (jdk.tls.disabledAlgorithms): use 5.1.49 or newer, or "
            "measure it in clear by `none`"
        )
    if error.code.startswith("1251") or "authentication" in text.lower():
        return ". The account logs in by a method that this driver does not know: use a newer driver, or an older server (mariadb@10.11)"
    if error.code == "tls":
        return ". Which versions and suites the driver offers: --set version=1.2, --set cipher=…"
    return ""
