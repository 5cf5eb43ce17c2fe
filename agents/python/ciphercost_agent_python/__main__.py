"""The agent's process: it reads requests from standard input and writes answers to standard output, one a line."""

from __future__ import annotations

import os
import sys
from typing import Any

from ciphercost_agent_python import fields
from ciphercost_agent_python.session import Session


def main() -> int:
    # Drivers may print messages for people; standard output is only for the protocol.
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def say(answer: dict[str, Any]) -> None:
        output.write(fields.written(answer))

    session = Session()
    try:
        for line in iter(sys.stdin.buffer.readline, b""):
            say(session.answer(line, say))
            if session.status is not None:
                return session.status
    except BrokenPipeError:
        return 0  # nobody reads any more
    session.close()
    return 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    os._exit(status)  # drivers leave threads behind that may wait for a silent server
