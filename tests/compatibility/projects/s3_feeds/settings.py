FEEDS = {"s3://feeds/%(ubi_agent)s-%(batch_id)d.jsonl": {"format": "jsonlines", "batch_item_count": 25}}
AWS_ACCESS_KEY_ID = AWS_SECRET_ACCESS_KEY = "test"
AWS_REGION_NAME = "eu-west-1"
