"""What a run becomes on GitHub: a job's summary, annotations, one issue for each regression."""
