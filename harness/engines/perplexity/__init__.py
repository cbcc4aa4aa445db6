"""A child that runs a build's ``llama-perplexity`` over prompts and reads the logits that it saves.

``python -m harness.engines.perplexity`` reads one JSON request from standard input and writes the same JSON lines as
the embedded child. The program is its own child, so that whatever supervises this process ends both.
"""
