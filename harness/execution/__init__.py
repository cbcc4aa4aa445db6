"""Running jobs: supervision, node facts, executors, dispatching."""
