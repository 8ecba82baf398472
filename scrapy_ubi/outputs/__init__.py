"""What a crawl leaves behind: the stores and their writer, what makes one result of those of all agents, duplicates,
and archives in place of the network.
"""
