"""An agent's exchanges with Redis: when, what, by which thread, and what is done while Redis is away."""
