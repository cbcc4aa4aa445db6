"""The state of the machine around an engine process: looked at from outside, at a low rate, never by the engine."""
