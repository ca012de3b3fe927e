"""Counters of a relay, for Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Metrics:
    """The counters of one relay; `page` is what `/metrics` shows."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own: Any = {"registry": self.registry, "namespace": "negvec"}
        self.connections = Gauge("connections", "Connections that are open.", **own)
        self.turned_away = Counter("connections_turned_away", "Connections above the limit.", **own)
        self.slow_readers = Counter("slow_readers", "Connections cut off because they did not read.", **own)
        self.events = Counter("events", "Events that clients sent, by outcome.", ["outcome"], **own)
        self.stored = Gauge("events_stored", "Events in the store.", **own)
        self.neg_rounds = Counter("neg_rounds", "Messages of NEG sessions answered.", **own)
        self.neg_bytes = Counter("neg_bytes_sent", "Bytes of NEG frames sent, before compression.", **own)
        self.neg_seconds = Histogram("neg_seconds", "Time to answer a NEG frame.", buckets=_SECONDS, **own)

    def page(self) -> bytes:
        """The counters in Prometheus' text format."""
        return generate_latest(self.registry)
