"""The text of `perf script`: samples and frames are read as printed, names are cleaned, and nothing makes it fail."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ciphercost.host import perf_text
from ciphercost.host.perf_text import Lost, Sample
from ciphercost.model.profile import NAMELESS, SEPARATOR

RECORDED = """\
nginx 31970/31970 51234.123456789:
\tffffffff81b6a460 _copy_from_iter ([kernel.kallsyms])
\tffffffff8200e603 tcp_sendmsg_locked.isra.0 ([kernel.kallsyms])
\t           8f3a7 [unknown] (/var/cache/ciphercost/nginx/1.26-debian/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           8f3cc [unknown] (/var/cache/ciphercost/nginx/1.26-debian/usr/lib/x86_64-linux-gnu/libc.so.6)
\t          104875 write (/var/cache/ciphercost/nginx/1.26-debian/usr/lib/x86_64-linux-gnu/libc.so.6)
\t           2aa10 _start (/var/cache/ciphercost/nginx/1.26-debian/usr/sbin/nginx)

a thread: 1 7/9 3.5:
\t    7f0000001234 Ljava/lang/String;::hashCode (/tmp/perf-7.map)
\t          401000 std::vector<int, std::allocator<int> >::push_back(int const&) (/opt/my server/x (deleted))
\t               0 [unknown] ([unknown])

PERF_RECORD_LOST lost 12
"""


def test_a_recorded_text_is_read_as_printed() -> None:
    first, second, lost = perf_text.read(RECORDED.splitlines(keepends=True))
    assert first == Sample(
        "nginx",
        31970,
        51234123456789,
        (
            "kernel`_copy_from_iter",
            "kernel`tcp_sendmsg_locked",
            "libc.so.6`?",
            "libc.so.6`write",
            "nginx`_start",
        ),
    )
    assert first.whole
    assert second == Sample(
        "a thread: 1",
        7,
        3500000000,
        (
            "JIT`Ljava/lang/String ::hashCode",
            "x`std::vector<int, std::allocator<int> >::push_back(int const&)",
        ),
    )
    assert not second.whole
    assert lost == Lost(12)


def test_what_compilers_append_to_a_name_is_left_out() -> None:
    java = "void com.sun.crypto.provider.AESCrypt.init(boolean, byte[])"
    assert perf_text.name("/tmp/perf-7.map", java) == "JIT`com.sun.crypto.provider.AESCrypt.init"
    for symbol, plain in {
        "do_softirq.part.0": "do_softirq",
        "f.constprop.0.isra.1": "f",
        "memcpy@@GLIBC_2.14": "memcpy",
        "core::ptr::drop_in_place::h0123456789abcdef": "core::ptr::drop_in_place",
        "operator@": "operator@",
        "[unknown]": NAMELESS,
    }.items():
        assert perf_text.name("/lib/x.so", symbol) == f"x.so{SEPARATOR}{plain}"


def test_places_without_a_file_are_named_for_what_they_are() -> None:
    assert perf_text.name("[kernel.kallsyms]", "schedule") == "kernel`schedule"
    assert perf_text.name("[nf_tables]", "nft_do_chain") == "kernel [nf_tables]`nft_do_chain"
    assert perf_text.name("[vdso]", "__vdso_clock_gettime") == "[vdso]`__vdso_clock_gettime"
    assert perf_text.name("//anon", "[unknown]") == perf_text.NOWHERE


def test_warnings_between_samples_are_skipped() -> None:
    noise = ["Warning: kernel.kptr_restrict is set\n", *RECORDED.splitlines(keepends=True), "addr2line: failed\n"]
    assert len(list(perf_text.read(noise))) == 3


SYMBOLS = (
    st.text(st.characters(codec="utf-8", exclude_characters="\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1)
    .map(str.strip)
    .filter(bool)
)
FRAMES = st.tuples(
    st.integers(0, 2**64 - 1),
    SYMBOLS,
    st.sampled_from(["/usr/lib/libcrypto.so.3", "[kernel.kallsyms]", "/a b/c (deleted)"]),
)
SAMPLES = st.tuples(
    st.from_regex(r"[A-Za-z][\w:/.-]{0,12}\w", fullmatch=True),
    st.integers(1, 2**22),
    st.integers(0, 10**15),
    st.lists(FRAMES, max_size=8),
)


@given(st.lists(SAMPLES, max_size=6))
def test_every_printed_sample_is_read_with_its_process_time_and_frames(
    printed: list[tuple[str, int, int, list[tuple[int, str, str]]]],
) -> None:
    lines = []
    for process, pid, at, frames in printed:
        lines.append(f"{process} {pid}/{pid} {at // 10**9}.{at % 10**9:09d}: \n")
        lines += [f"\t{address:16x} {symbol} ({place})\n" for address, symbol, place in frames]
        lines.append("\n")
    read = list(perf_text.read(lines))
    assert [(event.process, event.pid, event.at_ns) for event in read if isinstance(event, Sample)] == [
        (process, pid, at) for process, pid, at, _ in printed
    ]
    for sample, (_, _, _, frames) in zip(read, printed, strict=True):
        assert isinstance(sample, Sample)
        # Neighbours without a name in one library are one frame; nothing else is lost.
        assert len(sample.frames) <= len(frames)
        assert bool(sample.frames) == bool(frames)
        assert all(frame.count(SEPARATOR) == 1 and frame.isprintable() for frame in sample.frames)


@given(st.text(max_size=400), st.text(max_size=400))
def test_no_text_makes_it_fail(before: str, after: str) -> None:
    text = f"{before}\n{RECORDED}{after}"
    for event in perf_text.read(text.splitlines(keepends=True)):
        assert isinstance(event, Sample | Lost)
