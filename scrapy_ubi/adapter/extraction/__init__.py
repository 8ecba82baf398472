"""The links of a response, as Scrapy's objects: the link extractor, by content type, all of a page as one object."""
