"""Items as they come: stores that give each item to a receiver before its page is done."""
