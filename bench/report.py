# SPDX-License-Identifier: Apache-2.0
"""What bench/run.py writes: results.json, table.md and plot.svg."""

import json
from math import log2
from xml.sax.saxutils import escape

from rows import FIGURES, MEASUREMENTS

MODES = ("native", "mps", "funnel")


def write(folder, about, table):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps({"about": about, "rows": table}, indent=1)
                                         + "\n")
    (folder / "table.md").write_text(markdown(about, table))
    title = f'Funnel beside MPS (dark) and native (light): {about["device"]}, {about["date"]}'
    (folder / "plot.svg").write_text(plot(title, advantages(table)))


def line(row, count, figures):
    """One row for one number of clients, as it is kept in results.json."""
    goal = row.goal(count)
    found = {"row": row.measurement, "figure": row.figure, "clients": count, "modes": figures,
             "higher_is_better": FIGURES[row.figure].higher_is_better,
             "goal": str(goal) if goal else None}
    found["met"] = is_met(goal, found)
    return found


def advantage(row, over):
    """How many times better Funnel is than the mode `over`; None when either is missing."""
    modes = row["modes"]
    if "funnel" not in modes or over not in modes:
        return None
    ours, theirs = modes["funnel"]["median"], modes[over]["median"]
    if not ours or not theirs:
        return None
    return ours / theirs if row["higher_is_better"] else theirs / ours


def is_met(goal, row):
    """None when that cannot be said here."""
    if not goal or "funnel" not in row["modes"]:
        return None
    if goal.over:
        ratio = advantage(row, goal.over)
        return ratio >= goal.value if ratio else None
    ours = row["modes"]["funnel"]["median"]
    return ours >= goal.value if row["higher_is_better"] else ours <= goal.value


def number(value):
    if value >= 1000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def cell(row, mode):
    figure = row["modes"].get(mode)
    if not figure:
        return "-"
    spread = (figure["max"] - figure["min"]) / 2 / figure["median"] * 100 if figure["median"] else 0
    return f"{number(figure['median'])} ±{spread:.0f}%"


def markdown(about, table):
    lines = [f"{about['device']}; {about['host']}; {about['date']}; `{about['command']}`; medians "
             f"of {about['repeat']} interleaved runs of {about['seconds']:g} s, ± half the spread. "
             "`beside` says how many times better Funnel is (above 1 is better).", "",
             "| row | clients | figure | native | NVIDIA MPS | Funnel | beside native "
             "| beside MPS | goal |", "|---|---|---|---|---|---|---|---|---|"]
    for row in filter(lambda row: row["modes"], table):
        ratios = [f"{r:.2f}" if (r := advantage(row, over)) else "-" for over in ("native", "mps")]
        cells = [MEASUREMENTS[row["row"]][1], str(row["clients"]), FIGURES[row["figure"]].unit]
        cells += [cell(row, mode) for mode in MODES] + ratios + [goal_cell(row)]
        lines.append("| " + " | ".join(cells) + " |")
    if about["failures"]:
        lines += ["", "Not measured:", ""] + [f"* {failure}" for failure in about["failures"]]
    return "\n".join(lines) + "\n"


def goal_cell(row):
    verdict = {True: ": met", False: ": **short**", None: ""}[row["met"]]
    return f"{row['goal']}{verdict}" if row["goal"] else ""


def label(row):
    return f'{MEASUREMENTS[row["row"]][1]}, {row["clients"]}, {FIGURES[row["figure"]].unit}'


DARK, LIGHT = "#1b5e8c", "#8fbfdd"


def advantages(table):
    """Funnel's over MPS (dark), then over native."""
    return [(label(row), ratio, color) for row in table for over, color in (("mps", DARK), ("native", LIGHT))
            if (ratio := advantage(row, over))]


def plot(title, bars):
    """Bars of (label, ratio, color) on a scale of powers of two."""
    height, middle, step = 18 * len(bars) + 60, 560, 90
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{height}" '
             f'font-family="sans-serif" font-size="11">'
             f'<rect width="900" height="{height}" fill="white"/>',
             f'<text x="10" y="20" font-size="14">{escape(title)}</text>']
    for power in range(-2, 4):
        x = middle + power * step
        parts.append(f'<line x1="{x}" y1="32" x2="{x}" y2="{height - 20}" stroke="#ccc"/>'
                     f'<text x="{x}" y="{height - 6}" text-anchor="middle">'
                     f'{2.0 ** power:g}x</text>')
    for i, (name, ratio, color) in enumerate(bars):
        parts.append(bar(name, ratio, color, 40 + 18 * i, middle, step))
    return "\n".join(parts) + "\n</svg>\n"


def bar(name, ratio, color, y, middle, step):
    length = max(-3.0, min(3.6, log2(ratio))) * step
    x, width = (middle, length) if length >= 0 else (middle + length, -length)
    return (f'<text x="10" y="{y + 11}">{escape(name)}</text>'
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="13" fill="{color}"/>'
            f'<text x="880" y="{y + 11}" text-anchor="end">{ratio:.2f}</text>')
