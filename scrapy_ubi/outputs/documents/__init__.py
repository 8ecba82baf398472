"""The text of documents that are no pages: PDF, and those of Office, read by a child process."""
