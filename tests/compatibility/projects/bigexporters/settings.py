FEEDS = {
    "big-%(ubi_agent)s.avro": {
        "format": "avro",
        "store_empty": False,
        "item_export_kwargs": {
            "metadata": {},
            "avroschema": {
                "name": "Page",
                "type": "record",
                "fields": [{"name": "title", "type": "string"}, {"name": "url", "type": "string"}],
            },
        },
    }
}
FEED_EXPORTERS = {"avro": "zuinnote.scrapy.contrib.bigexporters.AvroItemExporter"}
