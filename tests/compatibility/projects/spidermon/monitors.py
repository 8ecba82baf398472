from spidermon import Monitor, MonitorSuite, monitors


@monitors.name("Items")
class Items(Monitor):
    @monitors.name("all of them")
    def test_number(self):
        self.assertGreaterEqual(self.data.stats.get("item_scraped_count", 0), 96)


class Close(MonitorSuite):
    monitors = [Items]
