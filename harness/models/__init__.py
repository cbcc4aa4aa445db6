"""Shape cards, synthetic model files, GGUF headers, and the node-local cache of models.

For the rest of the harness:

- ``harness.models.cache.ensure_model("tiny-moe", "IQ4_XS") -> Path``: made on first use, then taken from the cache;
  ``harness.models.cache.read_sidecar(path)`` says what it is (``synthetic``, ``sha256``);
- ``harness.models.request.model_path(model) -> Path``: the file of a matrix's model, wherever it comes from; inside
  ``harness.models.usage.cache_held()`` it stays in the cache;
- ``harness.models.inspect.inspect_gguf(path) -> GgufInfo``: architecture, experts, quant mix, every tensor's type and
  bytes, from the header;
- ``harness.models.hashing.file_sha256(path) -> str``: remembered by path, size and modification time;
- ``harness.models.card.load_card(name_or_path) -> Card`` and ``packaged_cards()``;
- ``harness.models.quantize.QUANTS``: the quants by name.

Nothing here loads an engine, and importing this package imports nothing.
"""
