"""What a statement does, judging by its shape: reads, writes, begins a transaction, or is nothing that a replay can run. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

Sort = Literal["read", "write", "begin", "end", "savepoint", "autocommit on", "autocommit off", "left out"]

WRITES = "writes; --writes keeps them"
_FIRST = re.compile(r"[(\s]*([a-z]+)")
_WRITING = re.compile(r"\b(?:insert|update|delete|merge|into|nextval|setval)\b")
_LOCKING = re.compile(r"\bfor (?:update|no key update|share|key share)\b|\block in share mode\b")
_FUNCTIONS = re.compile(
    r"\b(?:pg_sleep\w*|pg_notify|pg_terminate_backend|pg_cancel_backend|pg_reload_conf|pg_rotate_logfile|pg_(?:try_)?advisory_\w+|pg_read_\w*file"
    r"|pg_ls_dir|pg_switch_wal|pg_create_\w+|pg_drop_\w+"
    r"|pg_start_backup|pg_backup_\w+|pg_stop_backup"
    r"|pg_promote|pg_logical_\w+|pg_replication_\w+|set_config|lo_\w+|dblink\w*|sleep|benchmark"
    r"|get_lock|release_lock|release_all_locks|load_file|master_pos_wait|source_pos_wait|wait_for_executed_gtid_set) ?\("
)
FUNCTIONS = "call functions that wait, lock, or act outside of the tables"
EXPLAIN_ANALYZE = "EXPLAIN ANALYZE, which an application does not send"
SETTINGS = "SET, RESET, USE and other settings of a session"
TWO_PHASE = "two-phase commits"
REASONS = {
    SETTINGS: "set reset use discard deallocate prepare execute",
    "COPY and LOAD DATA, whose rows are not in the log": "copy load",
    "LISTEN, NOTIFY and UNLISTEN": "listen notify unlisten",
    "cursors": "declare fetch move close handler",
    "definitions (CREATE, ALTER, DROP, GRANT …)": "create alter drop truncate rename grant revoke comment security reindex cluster import install uninstall",
    "maintenance (VACUUM, ANALYZE, FLUSH …)": (
        "vacuum analyze check checkpoint checksum optimize repair flush kill purge reload refresh shutdown cache binlog change start stop reassign"
    ),
    "procedures (CALL, DO)": "call do",
    "locks of whole tables": "lock unlock",
    TWO_PHASE: "xa",
}
"""Why such statements are left out: their first words."""
_LEFT_OUT = {word: why for why, words in REASONS.items() for word in words.split()}
UNKNOWN = "begin with no word of SQL that is known here"
_READ = ("select", "values", "table", "with", "show", "explain", "desc", "describe", "help")
_WRITE = ("insert", "update", "delete", "merge", "replace")


@lru_cache(20_000)
def sort(shape: str) -> tuple[Sort, str]:
    """(what a statement of this shape does, why it can't be replayed)."""
    first = _FIRST.match(shape)
    word = first[1] if first else ""
    if word in _READ or word in _WRITE:
        if _FUNCTIONS.search(shape):
            return "left out", FUNCTIONS
        if shape.startswith("explain analy"):
            return "left out", EXPLAIN_ANALYZE
        if word in _WRITE or (
            word not in ("show", "desc", "describe", "help") and (_WRITING.search(shape) or _LOCKING.search(shape))
        ):
            return "write", WRITES
        return "read", ""
    if word == "begin" or shape.startswith("start transaction"):
        return "begin", ""
    if word in ("commit", "end", "rollback", "abort"):
        if " prepared" in shape:
            return "left out", TWO_PHASE
        return ("savepoint", "") if re.match(r"rollback (?:work |transaction )?to\b", shape) else ("end", "")
    if word in ("savepoint", "release"):
        return "savepoint", ""
    if word == "set" and (
        match := re.fullmatch(r"set (?:session |@@(?:session\.)?)?autocommit ?:?= ?(\?|on|off|true|false)", shape)
    ):
        # The shape has no value: whoever asks must look at the text.
        return ("autocommit on" if match[1] in ("on", "true") else "autocommit off"), ""
    return "left out", _LEFT_OUT.get(word, UNKNOWN)
