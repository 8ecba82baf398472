"""What an agent tells people: its profile, its figures, and answers to their queries."""
