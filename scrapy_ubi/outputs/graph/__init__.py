"""The link graph: what an agent keeps of each page's links while it crawls, and what is made of all agents' records."""
