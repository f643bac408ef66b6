"""grpc.health.v1: whether the daemon serves, asked once (Check, List) or followed (Watch).

Owns what each service name's condition is and who follows it. Every watcher waits on a worker thread of its own (a pool
with a bound, see ``gate.py``). The one lock is only ever held to look and to note: never while something is sent, which
waits for gRPC's polling thread, because that thread takes the same lock when a watcher hangs up. ``server.py`` makes
it and tells it; gRPC calls it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Any

import grpc
from grpc_health.v1 import health_pb2 as pb
from grpc_health.v1 import health_pb2_grpc

#: The service's full name, for reflection.
SERVICE = pb.DESCRIPTOR.services_by_name["Health"].full_name

#: The type stubs do not know List's messages.
_messages: Any = pb
#: What a watcher is told next; None = its call is over.
_News = SimpleQueue[pb.HealthCheckResponse | None]


class HealthServicer(health_pb2_grpc.HealthServicer):
    """What supervisors and load balancers call. Every name says NOT_SERVING until ``set_serving``."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._lock = threading.Condition()
        self._serving = False
        self._watchers: set[_News] = set()  # of known names
        self._untold: set[_News] = set()  # those whose last news are not sent yet

    def set_serving(self, serving: bool) -> None:
        """What every name says from now on; tells the watchers when it is news."""
        with self._lock:
            if serving == self._serving:
                return
            self._serving = serving
            for watcher in self._watchers:
                watcher.put(self._condition())
            self._untold = set(self._watchers)

    def wait_told(self, seconds: float) -> bool:
        """Wait until every watcher was sent the last news; False when that took too long."""
        with self._lock:
            return self._lock.wait_for(lambda: not self._untold, seconds)

    def _condition(self) -> pb.HealthCheckResponse:
        response = pb.HealthCheckResponse
        return response(status=response.SERVING if self._serving else response.NOT_SERVING)

    def Check(self, request: pb.HealthCheckRequest, context: grpc.ServicerContext) -> pb.HealthCheckResponse:
        """One name's condition; NOT_FOUND for a name nobody knows."""
        if request.service not in self._names:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return self._condition()

    def List(self, request: Any, context: grpc.ServicerContext) -> Any:
        """HealthListRequest -> HealthListResponse: every name's condition."""
        return _messages.HealthListResponse(statuses={name: self._condition() for name in self._names})

    def Watch(self, request: pb.HealthCheckRequest, context: grpc.ServicerContext) -> Iterator[pb.HealthCheckResponse]:
        """One name's condition now and at each change; SERVICE_UNKNOWN for a name nobody knows, which then waits."""
        news: _News = SimpleQueue()
        if not context.add_callback(lambda: news.put(None)):
            return  # over before it began
        try:
            with self._lock:
                if request.service in self._names:
                    self._watchers.add(news)
                    news.put(self._condition())
                else:
                    news.put(pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN))
            for response in iter(news.get, None):
                yield response  # gRPC comes back for more when it has been sent
                self._told(news)
        finally:
            self._told(news, over=True)

    def _told(self, news: _News, *, over: bool = False) -> None:
        with self._lock:
            if over:
                self._watchers.discard(news)
            if over or news.empty():
                self._untold.discard(news)
                self._lock.notify_all()
