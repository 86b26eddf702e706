#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws one training step of two Chrome traces of profile_torch.py below each other, on one scale.

    tests/programs/draw_trace.py native.json.gz funnel.json.gz > trace.svg

A step begins with aten::to, and ends with aten::item. Each trace has a row for the operators of each thread, one for the calls of
the runtime, and one for the GPU.
"""
import gzip
import html
import json
import sys

WIDTH, LEFT, ROW, GAP = 1000, 110, 22, 30
LABEL_WIDTH = 6.2  # of a character
COLORS = {"cpu_op": "#c9d7e8", "cuda_runtime": "#e6d3a8", "kernel": "#7fb08a", "gpu_memcpy": "#c98f6b",
          "gpu_memset": "#b9a0c9"}


def read_events(path):
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    return sorted((e for e in events if e.get("ph") == "X" and e.get("cat") in COLORS),
                  key=lambda event: (event["ts"], -event["dur"]))


def end_of(event):
    return event["ts"] + event["dur"]


def find_step(events):
    """Begin and end of the step in the middle."""
    ends = [end_of(e) for e in events if e["name"] == "aten::item"]
    end = ends[len(ends) // 2]
    return max(e["ts"] for e in events if e["name"] == "aten::to" and e["ts"] < end), end


def outermost(events):
    """Without those inside another one."""
    kept, last = [], 0
    for event in events:
        if event["ts"] >= last:
            kept.append(event)
            last = end_of(event)
    return kept


def rows_of(events, begin, end):
    inside = [e for e in events if e["ts"] < end and end_of(e) > begin]
    rows = []
    for thread in sorted({e["tid"] for e in inside if e["cat"] == "cpu_op"}, key=str):
        operators = outermost([e for e in inside if e["cat"] == "cpu_op" and e["tid"] == thread])
        rows.append(("operators", operators))
    rows.append(("runtime", [e for e in inside if e["cat"] == "cuda_runtime"]))
    rows.append(("GPU", [e for e in inside if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]))
    return rows


def draw_event(event, step, scale, y):
    """The part of it that is in the step."""
    begin, end = max(event["ts"], step[0]), min(end_of(event), step[1])
    x, width = LEFT + (begin - step[0]) * scale, max((end - begin) * scale, 0.7)
    name = html.escape(event["name"])
    took = f"{event['dur']:.1f} us"
    text = (f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" '
            f'fill="{COLORS[event["cat"]]}"><title>{name}, {took}</title></rect>')
    fits = int((width - 4) / LABEL_WIDTH)
    if fits > 4:
        text += f'<text x="{x + 2:.1f}" y="{y + 13}">{html.escape(event["name"][:fits])}</text>'
    return text


def draw_trace(title, events, span, y):
    begin, end = step = find_step(events)
    scale = (WIDTH - LEFT - 10) / span
    parts = [f'<text x="10" y="{y + 14}" font-size="13">{title}: {end - begin:.0f} us</text>']
    y += GAP
    for name, row in rows_of(events, begin, end):
        parts.append(f'<text x="10" y="{y + 13}">{name}</text>')
        parts += [draw_event(event, step, scale, y) for event in row]
        y += ROW
    return parts, y


def main():
    traces = [("natively", read_events(sys.argv[1])), ("through Funnel", read_events(sys.argv[2]))]
    span = max(end - begin for begin, end in (find_step(events) for _, events in traces))
    body, y = [], 10
    for title, events in traces:
        parts, y = draw_trace(title, events, span, y)
        body += parts
        y += 10
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif" '
          f'font-size="10"><rect width="{WIDTH}" height="{y}" fill="white"/>')
    print("\n".join(body), "\n</svg>", sep="")


if __name__ == "__main__":
    main()
