ADDONS = {"scrapy_zyte_api.Addon": 400}
ZYTE_API_KEY = "test"
ZYTE_API_TRANSPARENT_MODE = True
