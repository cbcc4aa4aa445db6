"""What things are: frozen types without I/O. Imports nothing of ours, so that everything else may import it."""
