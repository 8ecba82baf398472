"""Which pages are made by scripts, and so which hosts' pages go to a browser (`UBI_BROWSER`)."""
