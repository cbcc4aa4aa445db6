"""The journal of a run, and its projections: JUnit and the closing table."""
