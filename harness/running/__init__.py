"""A run from plan to verdicts: joins planning, execution, judging and the journal for the entry points."""
