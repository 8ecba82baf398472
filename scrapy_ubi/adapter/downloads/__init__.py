"""Whether a transfer may start and go on, and how much of its response is kept."""
