"""Any output of either fork's ``llama-bench``, read: text in, rows and problems out. One small module a format."""
