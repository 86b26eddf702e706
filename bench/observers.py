# SPDX-License-Identifier: Apache-2.0
"""What it costs programs that somebody looks at them: Prometheus each second, or a trace."""
import contextlib
import subprocess
import threading

SCRAPE_SECONDS = 1
# Long enough for several looks.
WINDOW_SECONDS = 3

OBSERVERS = {
    "scraped": "while their metrics are read each second",
    "traced": "while a trace of them is made",
}


def call(mode, *words):
    subprocess.run([mode.funnel, *words], env=mode.environment(), check=True, timeout=60,
                   stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def scraped(mode):
    ended = threading.Event()

    def scrape():
        while not ended.wait(SCRAPE_SECONDS):
            call(mode, "metrics")

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def traced(mode):
    thread = threading.Thread(target=call, args=(
        mode, "trace", "--seconds", str(WINDOW_SECONDS + 2), "-o", mode.directory + "/trace.json"))
    thread.start()
    try:
        yield
    finally:
        thread.join()


def observed(measure, how):
    """The measurement with an observer, and the share of its rate without one."""
    observer = {"scraped": scraped, "traced": traced}[how]

    def run(bench, mode, count, seconds):
        seconds = max(WINDOW_SECONDS, seconds)
        alone = measure(bench, mode, count, seconds)
        with observer(mode):
            figures = measure(bench, mode, count, seconds)
        return {**figures, "kept": figures["rate"] / alone["rate"]}

    return run
