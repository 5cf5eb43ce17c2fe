"""aes: which implementation does AES: the kernel's list, the CPU's flags, and what an environment hides of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ciphercost.host import aes
from ciphercost.plan import conditions
from conftest import Require

WITHOUT = """\
name         : xts(aes)
driver       : xts(ecb(aes-fixed-time))
module       : kernel
priority     : 101
refcnt       : 1
selftest     : passed
internal     : no
type         : skcipher

name         : aes
driver       : aes-fixed-time
module       : kernel
priority     : 101
refcnt       : 1
selftest     : passed
internal     : no
type         : cipher

name         : aes
driver       : aes-generic
module       : kernel
priority     : 100
refcnt       : 1
selftest     : passed
internal     : no
type         : cipher
"""
WITH = """\
name         : __xts(aes)
driver       : cryptd(__xts-aes-aesni)
module       : cryptd
priority     : 450
selftest     : passed
internal     : yes

name         : xts(aes)
driver       : xts-aes-aesni
module       : aesni_intel
priority     : 400
selftest     : passed
internal     : no

name         : xts(aes)
driver       : xts-aes-vaes-avx512
module       : aesni_intel
priority     : 800
selftest     : passed
internal     : no

name         : xts(aes)
driver       : xts-aes-broken
module       : broken
priority     : 900
selftest     : unknown
internal     : no
"""


def test_names_the_available_driver_with_the_highest_priority() -> None:
    cipher = aes.kernel("xts(aes)", WITH)
    assert (cipher.driver, cipher.priority) == ("xts-aes-vaes-avx512", 800)
    assert cipher.accelerated
    assert cipher.in_use
    assert "with AES instructions" in cipher.words()
    assert cipher.warning() == ""


def test_warns_if_the_kernel_does_aes_in_software() -> None:
    cipher = aes.kernel("xts(aes)", WITHOUT)
    assert cipher.driver == "xts(ecb(aes-fixed-time))"
    assert cipher.accelerated is False
    assert "no AES instructions" in cipher.words()
    assert "isn't that of a usual machine" in cipher.warning()


def test_an_unused_mode_is_described_by_its_block_cipher() -> None:
    cipher = aes.kernel("gcm(aes)", WITHOUT)
    assert not cipher.in_use
    assert cipher.driver == "aes-fixed-time"
    assert "not used yet" in cipher.words()
    assert cipher.warning()


def test_a_list_without_aes_gives_no_driver() -> None:
    cipher = aes.kernel("xts(aes)", "")
    assert cipher.accelerated is None
    assert "doesn't list" in cipher.words()
    assert cipher.warning() == ""


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ("xts-aes-aesni-avx", True),
        ("xts-aes-aesni", True),
        ("xts-aes-ce", True),
        ("xts-aes-neonbs", False),
        ("xts-aes-s390", True),
        ("ctr(aes-generic)", False),
        ("xts(ecb-aes-padlock)", True),
        ("xts(ecb(aes-lib))", None),
    ],
)
def test_accelerated_is_derived_from_the_drivers_name(driver: str, expected: bool | None) -> None:
    assert aes.accelerated(driver) is expected


def test_reads_this_kernels_list(require: Require) -> None:
    path = Path("/proc/crypto")
    require(path.exists(), "no /proc/crypto: a kernel without it")
    text = path.read_text()
    assert len(list(aes.parse(text))) == text.count("\nname ") + text.startswith("name ")
    plain = aes.kernel("aes", text)
    assert (plain.in_use, bool(plain.driver)) == ("\nname         : aes\n" in text,) * 2


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ("", set()),
        (conditions.X86_MASK, {"aes", "pclmulqdq", "vaes", "vpclmulqdq"}),
        (":~0x60000000000", {"vaes", "vpclmulqdq"}),
        ("~0x200000000000000", {"aes", "vaes", "vpclmulqdq"}),  # a missing second word counts as 0
        ("~0x1:~0x1", set()),
        ("0x0:0x0", {"aes", "pclmulqdq", "vaes", "vpclmulqdq"}),
        ("0x200000200000000:0x60000000000", set()),
    ],
)
def test_features_that_a_mask_hides(value: str, hidden: set[str]) -> None:
    assert aes.hidden_x86(value) == hidden


def test_hidden_features_are_named_with_a_warning() -> None:
    flags = {"aes", "vaes", "pclmulqdq", "sse2"}
    bare = aes.openssl_capabilities({}, flags, "x86_64")
    assert bare.words() == "AES and VAES instructions"
    assert bare.warning() == ""
    masked = aes.openssl_capabilities({"OPENSSL_ia32cap": conditions.X86_MASK}, flags, "x86_64")
    assert masked.words().startswith("no AES instructions (AES and VAES ")
    assert "the environment hides" in masked.warning()
    assert "this CPU has none" in aes.openssl_capabilities({}, {"sse2"}, "x86_64").warning()
    arm = aes.openssl_capabilities({"OPENSSL_armcap": "0x59"}, {"aes", "pmull", "asimd"}, "aarch64")
    assert arm.hidden == {"aes", "pmull"}


@pytest.mark.parametrize("env", [{}, {"OPENSSL_ia32cap": conditions.X86_MASK}], ids=["as it is", "masked"])
def test_openssl_itself_agrees(env: dict[str, str], require: Require) -> None:
    """`openssl info -cpusettings` prints the value that it works with."""
    require(os.uname().machine == "x86_64", "not an x86-64")
    done = subprocess.run(
        ["openssl", "info", "-cpusettings"], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    require(done.returncode == 0 and "=" in done.stdout, "no openssl that knows `info -cpusettings`")
    printed = [int(word, 16) for word in done.stdout.split("=")[1].split()[0].split(":")]
    able = aes.openssl_capabilities({**os.environ, **env})
    for name in ("aes", "vaes"):
        word, bit = aes.X86_BITS[name]
        assert bool(printed[word] >> bit & 1) == (name in able.used)


def test_only_openssl_is_assumed_to_obey_the_mask() -> None:
    assert aes.by_library("LibTomCrypt 1.18.2") == {"implementation": "LibTomCrypt 1.18.2"}
    assert aes.by_library("") == {}
    facts = aes.by_library("OpenSSL 3.5.7 9 Jun 2026", {"OPENSSL_ia32cap": "0x0:0x0"})
    assert facts["implementation"].startswith("OpenSSL 3.5.7 9 Jun 2026, no AES instructions")
    assert facts["warning"]
