"""A receiver of webhooks, as a program: PORT FILE. A request is a line of the file before it is answered."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(BaseHTTPRequestHandler):
    """Writes down what comes."""

    def do_POST(self) -> None:
        """Take an event."""
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        headers = {name: value for name, value in self.headers.items() if name.startswith("webhook-")}
        line = json.dumps({"path": self.path, "headers": headers, "body": body}) + "\n"
        os.write(FILE, line.encode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


if __name__ == "__main__":
    FILE = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
