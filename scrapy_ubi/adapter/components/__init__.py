"""What Scrapy instantiates:
the scheduler, the middlewares and the bot's page. Thin: each calls the rooms below, which decide.
"""
