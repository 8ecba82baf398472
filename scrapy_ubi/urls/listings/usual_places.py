"""Where sitemaps and feeds are on most sites whose robots.txt or home page names none."""

from __future__ import annotations

SITEMAPS = (
    "/sitemap.xml",
    "/sitemap_index.xml",  # Yoast
    "/wp-sitemap.xml",  # WordPress
    "/sitemap-index.xml",
    "/sitemap.xml.gz",
    "/sitemap.txt",
)
FEEDS = ("/feed", "/rss.xml", "/atom.xml", "/feed.xml", "/index.xml", "/feed.json")
