"""What was measured night after night: a database of measurements and verdicts, and the changes in it."""
