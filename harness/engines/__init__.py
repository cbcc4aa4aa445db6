"""Engines: flags, commands and outputs of the two forks. Pure: starting processes is execution's business."""
