"""A child that starts a build's ``llama-server``, sends it requests and times them.

``python -m harness.engines.served`` reads one JSON request from standard input and writes the same JSON lines as the
embedded child. The server is its own child, so that whatever supervises this process ends both.
"""
