"""The search index: the text of pages in the agents' files, and the SQLite database that is made of them."""
