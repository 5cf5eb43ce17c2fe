"""A format whose grammar is compiled late is checked all the same."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator, ValidationError


def test_a_reference_that_is_none_is_found() -> None:
    checked = Draft202012Validator({"format": "iri-reference"}, format_checker=Draft202012Validator.FORMAT_CHECKER)
    checked.validate("https://example.org/Grüße?a=b")
    with pytest.raises(ValidationError, match="is not a 'iri-reference'"):
        checked.validate("https://example.org/a b\\c")
