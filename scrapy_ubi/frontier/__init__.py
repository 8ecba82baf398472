"""Where URLs wait: per-host breadth-first queues, and the workbench that says which host may be fetched now."""
