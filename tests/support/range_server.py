#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A web server that answers requests for ranges of the files of a folder, and counts their bytes:
range_server.py FOLDER. Prints its port; a request for /sent is answered with the count."""
import functools
import http.server
import os
import sys


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sent = 0

    def answer(self, status, size, fields=()):
        self.send_response(status)
        for name, value in (*fields, ("Accept-Ranges", "bytes"), ("Content-Length", size)):
            self.send_header(name, str(value))
        self.end_headers()

    def do_HEAD(self):
        self.answer(200, os.path.getsize(self.translate_path(self.path)))

    def do_GET(self):
        if self.path == "/sent":
            text = str(Handler.sent).encode()
            self.answer(200, len(text))
            self.wfile.write(text)
            return
        path = self.translate_path(self.path)
        size = os.path.getsize(path)
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        last = min(int(last), size - 1)
        with open(path, "rb") as file:
            file.seek(int(first))
            data = file.read(last - int(first) + 1)
        self.answer(206, len(data), [("Content-Range", f"bytes {first}-{last}/{size}")])
        self.wfile.write(data)
        Handler.sent += len(data)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(
    ("127.0.0.1", 0), functools.partial(Handler, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
