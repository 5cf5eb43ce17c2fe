"""A secret prints as `redacted`, wherever it ends up; only the agent's messages have it."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.model.secret import Secret, encoded, reveal

TEXT = "Sesame-4711-Xy"
SHOWN: dict[str, Callable[[Secret], str]] = {
    "str": str,
    "repr": repr,
    "format": lambda secret: f"{secret}",
    "padded": lambda secret: f"{secret:>20}",
    "percent": lambda secret: "%s %r" % (secret, secret),  # noqa: UP031
    "in a dict": lambda secret: str({"password": secret}),
    "in a struct": lambda secret: repr(msgspec.defstruct("S", [("password", Secret)])(secret)),
    "in an exception": lambda secret: repr(ValueError("wrong", secret)),
}


@pytest.mark.parametrize("way", SHOWN)
def test_it_prints_as_redacted(way: str) -> None:
    shown = SHOWN[way](Secret(TEXT))
    assert "redacted" in shown
    assert TEXT not in shown


def test_a_traceback_and_a_log_do_not_show_it() -> None:
    fields, written = {"user": "me", "password": Secret(TEXT)}, io.StringIO()
    logger = logging.Logger("test")
    logger.addHandler(logging.StreamHandler(written))
    try:
        raise RuntimeError(fields)
    except RuntimeError as error:
        trace = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        logger.exception("failed with %s", fields)
    assert "redacted" in trace
    # The constant's own name is a local of this test, so only what is in `fields` counts.
    assert TEXT not in trace.replace(repr(TEXT), "")
    assert TEXT not in written.getvalue()


@pytest.mark.parametrize("write", [pickle.dumps, json.dumps, msgspec.json.encode, msgspec.msgpack.encode, copy.copy])
def test_nothing_writes_it_by_accident(write: Callable[[object], object]) -> None:
    with pytest.raises(TypeError):
        write(Secret(TEXT))


@given(st.text())
def test_a_message_to_an_agent_has_it(text: str) -> None:
    message = msgspec.json.encode({"password": Secret(text)}, enc_hook=encoded)
    assert json.loads(message) == {"password": text}
    assert reveal(Secret(text)) == Secret(text).reveal() == text
    assert (Secret(text) == Secret(text), Secret(text) == text, bool(Secret(text))) == (True, False, bool(text))


def test_the_encoder_refuses_anything_else() -> None:
    with pytest.raises(TypeError, match="can't encode set"):
        msgspec.json.encode({"fields": object}, enc_hook=lambda _: encoded({1}))


def test_a_field_without_a_secret_is_its_own_text() -> None:
    assert [reveal(value) for value in (None, "", "word", 5)] == ["", "", "word", "5"]
