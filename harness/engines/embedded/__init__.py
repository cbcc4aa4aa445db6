"""The in-process engines: one child process measures one fork's wheel through its C API.

``python -m harness.engines.embedded`` reads one JSON request from standard input and writes JSON lines to standard
output. The parent starts a fresh child for each arm and block: an abort inside the library then takes only the child,
and the process start stays the unit of replication.

Of the rest of the harness only what makes outputs imports something, ``harness.ranking``, and that only where outputs
are asked for: a child starts in a fraction of a second.
"""
