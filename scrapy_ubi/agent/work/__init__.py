"""From the frontier to the engine and back: which request is next, the visits under way, the links found."""
