"""Classes of requests that travel: Scrapy's own, by name, and what another class is made of."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import FormRequest, JsonRequest, XmlRpcRequest

CLASSES: dict[str, type[Request]] = {cls.__name__: cls for cls in (FormRequest, JsonRequest, XmlRpcRequest)}
NAMES = {cls: name for name, cls in CLASSES.items()}
USUAL_JSON = JsonRequest("http://usual.invalid/").dumps_kwargs


def base_of(cls: type[Request]) -> type[Request]:
    """The class of Scrapy's that a class of requests is made of."""
    return next(base for base in cls.__mro__ if base in NAMES or base is Request)


def is_more(request: Request) -> bool:
    """Whether a request of a class of somebody's own holds more than Scrapy's class does."""
    cls = type(request)
    more = (vars(one).get("__slots__") for one in cls.__mro__[: cls.__mro__.index(base_of(cls))])
    return bool(getattr(request, "__dict__", None)) or any(slots not in (None, (), []) for slots in more)
