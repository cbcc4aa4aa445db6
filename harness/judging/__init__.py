"""Pure judging: measurements in, verdicts out. No I/O, no clock, no chance: judging twice gives the same verdict."""
