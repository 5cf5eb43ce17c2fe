"""runs: Whole runs: new, resumed, of a published study, of imported files; each uses all layers below."""
