"""The packaged test module that every matrix is collected from."""
