"""WARC 1.1: what came over the line, in the file format of web archives, and an index (CDXJ) beside each file."""
