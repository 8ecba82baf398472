from hashlib import sha1
from urllib.parse import urlsplit


class WithoutQuery:
    """A product is its path, whatever stands in the query."""

    def fingerprint(self, request):
        parts = urlsplit(request.url)
        query = "" if parts.path.startswith("/p/") else parts.query
        return sha1(f"{request.method} {parts.netloc}{parts.path}?{query}".encode()).digest()
