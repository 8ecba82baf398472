"""The project whose agents the faults happen to."""
