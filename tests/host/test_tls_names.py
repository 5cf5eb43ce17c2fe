"""tls_names: which cipher suites belong to which version; CBC suites exist only in TLS 1.2, and not on every server."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from ciphercost import commands, engines
from ciphercost.host.tls_names import SUITES_13, SUITES_CBC, offered, suite
from ciphercost.mechanisms.tls import MECHANISM
from ciphercost.model.errors import UsageError
from conftest import RequireServer


def test_a_cipher_has_one_suite_in_each_version_that_has_it() -> None:
    suites = {(v, c): suite(MECHANISM.check({"version": v, "cipher": c})) for v in ("1.2", "1.3") for c in SUITES_13}
    suites |= {("1.2", c): suite(MECHANISM.check({"version": "1.2", "cipher": c})) for c in SUITES_CBC}
    assert len(set(suites.values())) == len(suites) == 8
    assert suites["1.2", "aes256-cbc"] == "ECDHE-RSA-AES256-SHA384"
    assert {name for (version, _), name in suites.items() if version == "1.2"} <= set(offered("1.2"))
    assert not set(offered("1.2", cbc=False)) & {
        name.format(key) for name in SUITES_CBC.values() for key in ("RSA", "ECDSA")
    }


@pytest.mark.parametrize("cipher", SUITES_CBC)
def test_cbc_is_refused_if_the_version_has_none(cipher: str) -> None:
    with pytest.raises(UsageError, match=r"TLS 1\.3 has no CBC; write version=1\.2"):
        MECHANISM.fits(engines.get("postgresql"), MECHANISM.check({"cipher": cipher}))
    old = MECHANISM.check({"version": "1.2", "cipher": cipher})
    MECHANISM.fits(engines.get("postgresql"), old)
    with pytest.raises(UsageError, match="mysql accepts no CBC suite"):
        MECHANISM.fits(engines.get("mysql"), old)


@pytest.mark.parametrize("engine", ["mariadb", "nginx", "apache", "postgresql"])
def test_servers_agree_on_cbc_where_it_is_all_that_is_offered(engine: str, require_server: RequireServer) -> None:
    require_server(engine)
    given = ["--set", "version=1.2", "--set", "cipher=aes128-cbc"]
    done = CliRunner().invoke(commands.cli, ["prove", f"{engine}:tls", *given])
    assert done.exit_code == 0, done.output
    assert "ECDHE-RSA-AES128-SHA256" in done.output
