REQUEST_FINGERPRINTER_CLASS = "shop.fingerprints.WithoutQuery"
