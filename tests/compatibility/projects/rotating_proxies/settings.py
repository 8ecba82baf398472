import os

PROXY = os.environ["http_proxy"].removeprefix("http://")
ROTATING_PROXY_LIST = [PROXY, PROXY.replace("127.0.0.1", "localhost")]
DOWNLOADER_MIDDLEWARES = {
    "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
    "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
}
ROTATING_PROXY_BACKOFF_BASE = 1
