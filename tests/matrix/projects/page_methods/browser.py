class PageMethod:
    """What is to be done with a page before it is read."""

    def __init__(self, method, *args, **kwargs):
        self.method, self.args, self.kwargs = method, args, kwargs
