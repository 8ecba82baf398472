"""Pages as Markdown: the main content found, converted, cut into chunks, and put into a tree of files."""
