"""The page, whole and self-contained."""

from __future__ import annotations


def page(nonce: str) -> str:
    """Its HTML; script and style elements carry this nonce."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>scrapy-ubi</title>'
        f'<style nonce="{nonce}">body{{font-family:sans-serif;margin:2em}}</style>'
        '<p>The crawl as JSON: <a href="/api/crawl">/api/crawl</a>, <a href="/api/hosts">/api/hosts</a></html>'
    )
