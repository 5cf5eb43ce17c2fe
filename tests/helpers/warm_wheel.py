"""The `ciphercost` of an environment made of wheels, for tests that call it a hundred times: a process that has imported everything forks.

    python warm_wheel.py SOCKET     the process that forks: for each connection to that socket one command

A shell calls it by its name too: the first `ciphercost` on PATH is then a program that hands its arguments, variables, directory and
standard streams to that process, and ends with the command's exit status. Commands may run at the same time, as in a pipe. What runs is
the environment's own `ciphercost.commands.main`, and nothing that only tests have can be imported there.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import forked

CLIENT = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asking:
    asking.connect({socket!r})
    text = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(asking, [len(text).to_bytes(4, "big")], [0, 1, 2])
    asking.sendall(text)
    status = int(asking.recv(20) or 255)
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
"""The program on PATH. It needs no library."""

processes: list[subprocess.Popen[bytes]] = []
"""Those that fork."""


def started(environment: Path, variables: Mapping[str, str]) -> Path:
    """Start the process that forks in this environment, until all tests end. Returns the directory to put first on PATH."""
    place = tempfile.TemporaryDirectory(prefix="cw")
    path, client = Path(place.name) / "socket", Path(place.name) / "bin" / "ciphercost"
    python = environment / "bin" / "python"
    client.parent.mkdir()
    client.write_text(CLIENT.format(python=python, socket=str(path)))
    client.chmod(0o755)
    process = subprocess.Popen(
        [python, __file__, path], env=variables, cwd=place.name, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    processes.append(process)

    def end() -> None:
        process.kill()
        process.communicate()
        place.cleanup()

    atexit.register(end)
    assert process.stdout.readline() == b"ready\n"
    return client.parent


def _serve(path: str, program: str) -> None:
    """Fork for each connection. Returns only in a process that then runs the command."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        while True:
            asking, _ = listener.accept()
            if os.fork() == 0:
                break
            asking.close()
            _count_ended()
    head, ends, _, _ = socket.recv_fds(asking, 4, 3)
    text = b""
    while len(text) < int.from_bytes(head, "big"):
        text += asking.recv(1 << 20)
    pid = os.fork()
    if pid:
        for each in ends:
            os.close(each)
        _, status = os.waitpid(pid, 0)
        with contextlib.suppress(OSError):  # whoever asked is gone
            asking.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    asking.close()
    for place, end in enumerate(ends):
        os.dup2(end, place)
        os.close(end)
    argv, directory, variables = json.loads(text)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = [program, *argv]


def _count_ended() -> None:
    """Wait for the children that have ended, so that their CPU time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


if __name__ == "__main__":
    del sys.path[0]
    forked.import_everything()
    gc.freeze()
    _serve(sys.argv[1], str(Path(sys.executable).parent / "ciphercost"))
    from ciphercost.commands import main

    forked.leave(main)
