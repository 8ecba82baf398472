ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1, "scrapy.pipelines.images.ImagesPipeline": 2}
FILES_STORE = "files"
IMAGES_STORE = "images"
