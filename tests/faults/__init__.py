"""Real processes, a real Valkey, real signals: what the promises are worth outside the simulator."""
