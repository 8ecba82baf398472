"""What lists the URLs of a site, with the time when each was changed: sitemaps and feeds, as entries; and where such
lists usually are."""
