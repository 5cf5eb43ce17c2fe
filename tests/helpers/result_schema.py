"""The published JSON Schema of a result."""

from __future__ import annotations

from functools import cache

import jsonschema

from ciphercost.model import schema


@cache
def _validator() -> jsonschema.Draft202012Validator:
    published = schema.result_schema()
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


def validate(result: object) -> None:
    """Raises jsonschema.ValidationError if a decoded result.json does not follow the schema."""
    _validator().validate(result)
