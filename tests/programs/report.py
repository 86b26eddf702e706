# SPDX-License-Identifier: Apache-2.0
"""The results as a table: tab-separated for tools, Markdown for docs/programs.md, and counts."""


def outcome(sample, title):
    return sample.runs.get(title) or sample.runs.get("build")


def remark(sample, titles):
    """The first thing that any run said about going wrong."""
    for title in titles:
        result = outcome(sample, title)
        if result.remark:
            return result.remark
    return ""


def agrees(sample, titles):
    """A program that passes the first way has to pass all; otherwise nothing is asked of it."""
    first, *others = [outcome(sample, title).verdict for title in titles]
    return first != "passed" or all(verdict in ("passed", "not run") for verdict in others)


def differing(samples, titles):
    return [sample for sample in samples if not agrees(sample, titles)]


def tsv(samples, titles):
    columns = [column for title in titles for column in (title, f"{title} s")]
    lines = ["\t".join(["program", *columns, "remark"])]
    for sample in samples:
        cells = [sample.name]
        for title in titles:
            result = outcome(sample, title)
            cells += [result.verdict, f"{result.seconds:.1f}"]
        lines.append("\t".join([*cells, remark(sample, titles).replace("\t", " ")]))
    return "\n".join(lines) + "\n"


def table(samples, titles):
    lines = ["| program | " + " | ".join(titles) + " | remark |",
             "|" + "---|" * (len(titles) + 2)]
    for sample in samples:
        cells = [cell(outcome(sample, title)) for title in titles]
        text = remark(sample, titles).replace("|", "\\|")
        lines.append(f"| {sample.name} | " + " | ".join(cells) + f" | {text} |")
    return "\n".join(lines) + "\n"


def cell(result):
    return f"{result.seconds:.1f} s" if result.verdict == "passed" else result.verdict


def summary(samples, titles):
    lines = []
    for title in titles:
        verdicts = [outcome(sample, title).verdict for sample in samples]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts))]
        lines.append(f"{title}: " + ", ".join(counts))
    for sample in differing(samples, titles):
        lines.append(f"differs: {sample.name}: {remark(sample, titles)}")
    return "\n".join(lines)
