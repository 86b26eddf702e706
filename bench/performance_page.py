#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md, docs/performance.svg and README's table, all from docs/performance.json.

    bench/performance_page.py --check                  fails when a page is not what the JSON gives
    bench/performance_page.py --write                  writes the pages
    bench/performance_page.py --record RESULTS RUN     puts a results.json of bench/run.py into the JSON

The JSON has the newest run of each row on each kind of card. A row that falls short of its goal has a
paragraph under "why", or the check fails.
"""

import argparse
import json
import pathlib
import sys

import report
from rows import FIGURES, MEASUREMENTS, ROWS

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA, PAGE, PLOT = (ROOT / "docs" / f"performance.{kind}" for kind in ("json", "md", "svg"))
README = ROOT / "README.md"
BEGIN, END = "<!-- bench/performance_page.py writes this table -->\n", "<!-- end of the table -->\n"
GOALS = {(row.measurement, row.figure, count): row.goal(count) for row in ROWS for count in row.clients}
MODES = {"native": "native", "mps": "NVIDIA MPS", "funnel": "Funnel"}
# Units of README's rows, and the divisor of each.
UNITS = {"M/s": 1e6, "k/s": 1e3}


def key_of(row):
    return row["row"], row["figure"], row["clients"]


def name_of(row):
    return " ".join(map(str, key_of(row)))


def view(row):
    """The row as report.py knows it."""
    return {"modes": {mode: {"median": row[mode]} for mode in MODES if mode in row},
            "higher_is_better": FIGURES[row["figure"]].higher_is_better}


def is_met(row):
    """The verdict of the run, which knew more digits, or that of the figures; None without a goal."""
    return row["met"] if "met" in row else report.is_met(GOALS[key_of(row)], view(row))


def goal_cell(row):
    verdict = {True: ": met", False: ": **short**", None: ""}[is_met(row)]
    return f"{GOALS[key_of(row)]}{verdict}" if GOALS[key_of(row)] else ""


def figure_cell(row, mode):
    if mode not in row:
        return "-"
    spread = row.get("spread", {}).get(mode)
    return report.number(row[mode]) + (f" ±{spread}%" if spread else "")


def ratio_cell(row, over):
    ratio = report.advantage(view(row), over)
    return f"{ratio:.2f}" if ratio else "-"


def letters(card):
    return {run["run"]: "abcdefghijklmnopqrstuvwxyz"[i] for i, run in enumerate(card["runs"])}


def run_line(card, run):
    where = ", ".join(filter(None, (run.get("driver"), run.get("host"))))
    return (f"* **{letters(card)[run['run']]}**: {run['date']}; {where}; `{run['command']}`; "
            f"passes: {run['passes']}. {run.get('note', '')}").rstrip()


def table(card):
    yield ("| row | clients | figure | native | NVIDIA MPS | Funnel | beside native | beside MPS "
           "| goal | run |")
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in card["rows"]:
        cells = [MEASUREMENTS[row["row"]][1], row["clients"], FIGURES[row["figure"]].unit]
        cells += [figure_cell(row, mode) for mode in MODES]
        cells += [ratio_cell(row, over) for over in ("native", "mps")]
        yield "| " + " | ".join(map(str, [*cells, goal_cell(row), letters(card)[row["run"]]])) + " |"


def short_card(card):
    return " ".join(card["card"].split()[:2]).replace("NVIDIA ", "")


def why_lines(data):
    for reason in data["why"]:
        first, *rest = reason["why"]
        cards = " and ".join(short_card({"card": card}) for card in reason["cards"])
        yield f"* {first}"
        yield from (f"  {line}" for line in rest)
        yield f"  ({cards}; rows {', '.join(f'`{name}`' for name in reason['rows'])})"


def page(data):
    lines = ["<!-- SPDX-License-Identifier: Apache-2.0 -->",
             "<!-- Made from performance.json. Refresh: bench/performance_page.py --write -->",
             "# Performance", "",
             "This page has the newest run of each row of the benchmark on each kind of card. A figure compares",
             "with others of its own row only. `beside` says how many times better Funnel is: above 1 is better.",
             "± is half the spread of the passes; a difference of a few percent in a single pass means nothing.",
             "[bench/README.md](../bench/README.md) explains the rows, and [environment.md](environment.md#off-switches)",
             "lists the switches that take a mechanism out.", "",
             "![Funnel beside NVIDIA's MPS](performance.svg)", ""]
    for card in data["cards"]:
        lines += [f"## {card['card']}", "", *card.get("note", []), *([""] if "note" in card else [])]
        lines += ["Runs:", "", *(run_line(card, run) for run in card["runs"]), "", *table(card), ""]
    lines += ["## The rows that fall short, and why", "", *why_lines(data), "",
              "## Notes", "", *data["notes"]]
    return "\n".join(lines) + "\n"


def plot(data):
    """Funnel's advantage over MPS on both cards, row by row."""
    bars = [(report.label(row), ratio, color) for key in GOALS
            for card, color in zip(data["cards"], (report.DARK, report.LIGHT)) for row in card["rows"]
            if key_of(row) == key and (ratio := report.advantage(view(row), "mps"))]
    names = " (dark), ".join(map(short_card, data["cards"])) + " (light)"
    return report.plot(f"How many times better Funnel is than NVIDIA MPS: {names}", bars)


def find(data, name, row_name):
    card = next(card for card in data["cards"] if card["card"] == name)
    return next(row for row in card["rows"] if name_of(row) == row_name)


def readme_row(data, label, card, row_name, unit, funnel_row=None):
    """One line; the best figure is bold. Funnel's may be of another row: with another option."""
    row, own = find(data, card, row_name), find(data, card, funnel_row or row_name)
    figures = {mode: (own if mode == "funnel" else row).get(mode) for mode in MODES}
    known = [figure for figure in figures.values() if figure is not None]
    best = (max if FIGURES[row["figure"]].higher_is_better else min)(known)
    cells = ["-" if figure is None else f"{report.number(figure / UNITS.get(unit, 1))} {unit}"
             for figure in figures.values()]
    cells = [f"**{cell}**" if figure == best else cell for figure, cell in zip(figures.values(), cells)]
    return "| " + " | ".join([label, *cells]) + " |"


def readme_table(data):
    lines = [f"| {short_card(data['cards'][0])}, 8 programs unless stated otherwise | time slicing "
             "| NVIDIA MPS | Funnel |", "|---|---|---|---|"]
    lines += [readme_row(data, *row) for row in data["readme"]]
    return "\n".join([*lines, *data["readme_more"]]) + "\n"


def readme(data):
    text = README.read_text()
    before, rest = text.split(BEGIN)
    return before + BEGIN + readme_table(data) + END + rest.split(END)[1]


def pages(data):
    return {PAGE: page(data), PLOT: plot(data), README: readme(data)}


def unexplained(data):
    """Rows that miss their goal without a paragraph, and paragraphs about rows that are not there."""
    told = {(card, name) for reason in data["why"] for card in reason["cards"] for name in reason["rows"]}
    there = {(card["card"], name_of(row)): is_met(row) for card in data["cards"] for row in card["rows"]}
    for card, name in sorted(place for place, met in there.items() if met is False and place not in told):
        yield f'docs/performance.json: "why" lacks {name} on {card}, which misses its goal'
    for reason in data["why"]:
        if not any((card, name) in there for card in reason["cards"] for name in reason["rows"]):
            yield f'docs/performance.json: "why" explains {reason["rows"][0]}, which no card has'


def check(data):
    errors = list(unexplained(data))
    for path, text in pages(data).items():
        if not path.exists() or path.read_text() != text:
            errors.append(f"{path.relative_to(ROOT)} is not what docs/performance.json gives: "
                          "bench/performance_page.py --write")
    return errors


def recorded(results, run):
    """The rows of a results.json: medians of four digits, and half the spread in percent."""
    for row in filter(lambda row: row["modes"], results["rows"]):
        medians = {mode: float(f"{figure['median']:.4g}") for mode, figure in row["modes"].items()}
        spread = {mode: round((figure["max"] - figure["min"]) / 2 / figure["median"] * 100)
                  for mode, figure in row["modes"].items() if figure["median"]}
        new = {"run": run, "row": row["row"], "figure": row["figure"], "clients": row["clients"],
               **medians, "spread": {mode: part for mode, part in spread.items() if part}}
        yield new if row["met"] is None else {**new, "met": row["met"]}


def record(data, results, run):
    """Puts the run in front of its card's others; rows that were measured again leave the older runs."""
    about = results["about"]
    name, driver = (about["device"].split(", ") + [""])[:2]
    card = next((card for card in data["cards"] if card["card"] == name), None)
    if not card:
        card = {"card": name, "runs": [], "rows": []}
        data["cards"].append(card)
    rows = {key_of(row): row for row in [*card["rows"], *recorded(results, run)]}
    card["rows"] = [rows[key] for key in GOALS if key in rows]
    used = {row["run"] for row in card["rows"]}
    new = {"run": run, "date": about["date"], "driver": driver, "host": about["host"],
           "command": about["command"], "passes": str(about["repeat"])}
    card["runs"] = [run for run in [new, *card["runs"]] if run["run"] in used]


def json_text(value, indent=0):
    """JSON with one line for each row, run and line of text, so that changes of it can be read."""
    space = " " * indent
    if isinstance(value, list) and any(isinstance(item, (dict, list)) or indent for item in value):
        return "[\n" + ",\n".join(f"{space} {json_item(item, indent + 1)}" for item in value) + f"\n{space}]"
    return json.dumps(value, ensure_ascii=False)


def json_item(item, indent):
    if isinstance(item, dict) and any(isinstance(part, list) for part in item.values()):
        space = " " * indent
        parts = [f'{space} {json.dumps(name)}: {json_text(part, indent + 1)}' for name, part in item.items()]
        return "{\n" + ",\n".join(parts) + f"\n{space}}}"
    return json.dumps(item, ensure_ascii=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    what.add_argument("--record", nargs=2, metavar=("RESULTS", "RUN"))
    args = parser.parse_args()
    data = json.loads(DATA.read_text())
    if args.record:
        record(data, json.loads(pathlib.Path(args.record[0]).read_text()), args.record[1])
        DATA.write_text(json_item(data, 0) + "\n")
    if args.write:
        for path, text in pages(data).items():
            path.write_text(text)
    errors = check(data) if args.check else list(unexplained(data))
    print("\n".join(errors) or "The pages are what docs/performance.json gives.")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
