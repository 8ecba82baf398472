FEEDS = {"big-%(ubi_agent)s.parquet": {"format": "parquet", "store_empty": False}}
FEED_EXPORTERS = {"parquet": "zuinnote.scrapy.contrib.bigexporters.ParquetItemExporter"}
