"""An event stream resumes after an interruption and raises permanent errors."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice

import httpx
import pytest
from typing_extensions import override

from billfold_client import streams
from billfold_client.errors import ApiError
from billfold_client.partner import PartnerApi
from billfold_client.streams import MessageLines


@pytest.fixture
def event_server():
    """A server that sends two events on each connection and closes it, and the requests it received."""
    asked = []

    class Told(BaseHTTPRequestHandler):
        def do_GET(self):
            last = self.headers.get("last-event-id")
            asked.append((self.path, last))
            if "gone" in self.path:
                self.send_error(403)
                return
            self.send_response(503 if len(asked) == 2 else 200)
            self.end_headers()
            if len(asked) != 2:
                position = json.dumps({"sequence": int(last or 0)})
                self.wfile.write(f"event: heartbeat\ndata: {position}\n\n".encode())
                for number in (int(last or 0) + 1, int(last or 0) + 2):
                    self.wfile.write(b'id: %d\ndata: {"sequence": %d}\n\n' % (number, number))
                self.wfile.write(b"id: 99\ndata: half a mess")

        @override
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Told)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()


def test_a_broken_event_stream_is_resumed_after_the_last_sequence(event_server, monkeypatch):
    monkeypatch.setattr(streams, "RECONNECT_DELAY_SECONDS", (0.0, 0.0))
    address, asked = event_server
    with httpx.Client(base_url=address) as http:
        stream = PartnerApi(http).stream_events(event_type=["a", "b"])
        events = (each for each in stream if not each.event)
        assert [each.sequence for each in islice(events, 5)] == [1, 2, 3, 4, 5]
        assert stream.sequence == 5
    assert [last for _, last in asked] == [None, "2", "2", "4"]
    assert asked[0][0].endswith("?event_type%5B%5D=a&event_type%5B%5D=b")


def test_a_permanent_error_of_the_event_stream_is_raised(event_server):
    with httpx.Client(base_url=event_server[0]) as http, pytest.raises(ApiError, match="403"):
        next(iter(PartnerApi(http).stream_events(event_type=["gone"])))


def test_a_stream_message_without_an_id_has_no_sequence():
    lines = [": a comment", "", "retry: 1", "", 'data: {"sequence": null}', ""]
    reader = MessageLines()
    (message,) = [message for line in lines for message in reader.feed(line)]
    assert (message.event, message.sequence) == ("", None)
