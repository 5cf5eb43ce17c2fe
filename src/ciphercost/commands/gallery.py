"""`ciphercost gallery`: the earlier name of `ciphercost book`, which scripts may use. No help lists it."""

from __future__ import annotations

import copy

from ciphercost.commands.book import book

gallery = copy.copy(book)
gallery.name, gallery.hidden = "gallery", True
