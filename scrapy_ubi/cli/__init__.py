"""What people run and read: `scrapy ubi ...`, its answers as text and JSON, agents on this machine, crawls without a
project.
"""
