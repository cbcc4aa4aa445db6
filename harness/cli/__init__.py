"""``moe-harness``: the command line, one small module per command."""
