"""moe-harness: measure, compare and gate llama.cpp-family builds on MoE models.

Importing the package is cheap on purpose: engine children start with it, so nothing heavy is imported here.
"""

__version__ = "0.1.0"
