"""What an agent says of itself as values: what it counts, the profile that others read, sums of several."""
