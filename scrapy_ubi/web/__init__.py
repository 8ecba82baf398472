"""A crawl in a browser: the server of `scrapy ubi web`, and of `UBI_WEB` in an agent.

* `web_app`: the routes, put together; `security` judges each request before it is answered, `parameters` what it says.
* `readings` and `verbs`: what may be asked and said, each the function behind a command of `scrapy ubi`.
* `reader`: runs these functions in threads, for they wait for Redis and for agents.
* `crawl_view`, `live_stream`: the crawl at one look, made once for all viewers; `page_history`: how it went.
* `server` is the command, `agent_server` the same in an agent, `shelf_client` its way to a crawl without Redis.
* `index_now`, `web_sub`: sites and hubs that say what is new.
* `page`: the page itself.
* `tools`: the same functions as tools for models (`scrapy ubi mcp`); `kept_text`: the text of a page.

aiohttp is imported in this wing only, the SDK of the tools in `tools/mcp_server` only, and this wing only when it is
wanted: commands and the add-on name it by its dotted path.
"""
