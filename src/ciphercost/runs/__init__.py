"""Whole runs: new, resumed, of a published study, or of imported files. Each uses all layers below."""
