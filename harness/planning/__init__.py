"""Matrix files to cases, cases to jobs."""
