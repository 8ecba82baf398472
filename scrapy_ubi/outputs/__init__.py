"""What a crawl leaves behind:
feeds, whose file belongs to one agent and whose items are on disk before their page is done.
"""
