"""The load generator of latency/kafka: python producer.py BROKERS TOPIC RATE SECONDS TICK_MS."""

from __future__ import annotations

import sys
import time

from pace import pace


def main() -> None:
    from confluent_kafka import Producer

    brokers, topic, rate, seconds, tick_ms = sys.argv[1:]
    p = Producer({"bootstrap.servers": brokers, "linger.ms": 1, "queue.buffering.max.messages": 1_000_000})
    time.sleep(2)

    def hand_over(first: int, count: int) -> None:
        now = time.time_ns()
        for i in range(first, first + count):
            text = f'{{"id":{i},"symbol":"sym{i % 1_000:04}","price":{i * 7919 % 1000 / 37:.4f},"handed_ns":{now:019}}}'
            p.produce(topic, text)
        p.poll(0)

    pace(int(rate), float(seconds), float(tick_ms), hand_over)
    p.flush()


main()
