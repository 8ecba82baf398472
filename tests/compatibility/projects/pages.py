import attrs
from web_poet import HttpClient, Returns, WebPage, field, handle_urls


@attrs.define
class Product:
    title: str
    weight: str


class DetailPage(WebPage):
    @field
    def detail(self):
        return self.css("h1::text").get()


@handle_urls("shop0.example")
@handle_urls("shop1.example")
@handle_urls("shop2.example")
@handle_urls("shop3.example")
@attrs.define
class ProductPage(WebPage, Returns[Product]):
    http: HttpClient

    @property
    def name(self):
        return self.css("h1::text").get()

    @property
    def detail(self):
        return self.css("a.detail::attr(href)").get()

    @field
    def title(self):
        return self.name

    @field
    async def weight(self):
        """Fetched by the page object itself, from another host."""
        response = await self.http.get(self.detail)
        return response.css(".weight::text").get()
