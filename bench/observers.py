# SPDX-License-Identifier: Apache-2.0
"""What it costs programs to be observed: by Prometheus each second, or by a trace."""
import contextlib
import socket
import subprocess
import threading

import modes

SCRAPE_SECONDS = 1
# Long enough for several looks.
WINDOW_SECONDS = 3
TURNS = 5

OBSERVERS = {
    "scraped": "while their metrics are read each second",
    "traced": "while a trace of them is made",
}


def metrics_socket(mode):
    return mode.directory + "/metrics"


def scrape(mode):
    """Whether the metrics have a client."""
    with socket.socket(socket.AF_UNIX) as reader:
        reader.settimeout(60)
        reader.connect(metrics_socket(mode))
        reader.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        text = b"".join(iter(lambda: reader.recv(1 << 16), b""))
    return b"\nfunnel_client_launches_total{" in text


@contextlib.contextmanager
def scraped(mode):
    """As Prometheus does, and not by a program that has to start each time."""
    ended, found = threading.Event(), []

    def scrape_often():
        while not ended.wait(SCRAPE_SECONDS):
            found.append(scrape(mode))

    thread = threading.Thread(target=scrape_often)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if not any(found):
        raise RuntimeError("no metrics of the measured program")


@contextlib.contextmanager
def traced(mode):
    command = [mode.funnel, "trace", "--seconds", str(WINDOW_SECONDS + 2), "-o",
               mode.directory + "/trace.json"]
    with subprocess.Popen(command, env=mode.environment(), stdout=subprocess.DEVNULL) as trace:
        yield
        if trace.wait(60):
            raise RuntimeError("funnel trace has failed")


def in_turn(measure, observer, bench, mode, count, seconds):
    """The measurement with an observer, and the share of its rate without one. The two take turns,
    since two runs of a program may differ by more than the observer costs."""
    alone = beside = 0
    for _ in range(TURNS):
        alone += measure(bench, mode, count, seconds)["rate"]
        with observer(mode):
            figures = measure(bench, mode, count, seconds)
        beside += figures["rate"]
    return {**figures, "kept": beside / alone}


def observed(measure, how):
    """With a daemon of its own, which serves metrics."""
    observer = {"scraped": scraped, "traced": traced}[how]

    def run(bench, mode, count, seconds):
        here = modes.Funnel(bench.funnel, bench.device)
        here.options = ("--metrics", metrics_socket(here))
        here.restart()
        try:
            bench.warm_up(here)
            return in_turn(measure, observer, bench, here, count, max(WINDOW_SECONDS, seconds))
        finally:
            here.stop()

    return run
