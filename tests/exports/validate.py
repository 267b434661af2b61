"""Parses HTML files strictly, as browsers do but without forgiving anything; prints what is wrong."""

import sys

import html5lib

wrong = 0
for path in sys.argv[1:]:
    parser = html5lib.HTMLParser()
    with open(path, "rb") as file:
        parser.parse(file, transport_encoding="utf-8")
    for position, code, values in parser.errors:
        print(f"{path}:{position}: {html5lib.constants.E[code] % values}")
        wrong += 1
sys.exit(1 if wrong else 0)
