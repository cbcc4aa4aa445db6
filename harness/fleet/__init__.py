"""A fleet of nodes under Ray: starting and joining, what is in it, and what would spoil measurements on a node."""
