"""What robots.txt says (RFC 9309, AIPREF), and what is remembered of it."""
