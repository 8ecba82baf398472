"""An agent among its peers: joining, beats, leaving, and agents that are dead or lost."""
