#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the completion of `funnel` from its own help: make_completion.py BIN_FOLDER bash|zsh|fish OUTPUT.

A command's options are the words in its help that begin with hyphens. Where the usage names the
values of one (--device auto|cuda|soft), or of the command (equal|half-equal), these are offered.
"""
import pathlib
import re
import subprocess
import sys

WITH_PROGRAM = "run"  # the one command that another command line follows


class Command:
    def __init__(self, folder, name, summary):
        text = output_of(folder, "help", name)
        usage = text.partition("\n\n")[0]
        self.name, self.summary = name, summary
        self.options = sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text.partition(
            "Examples:")[0])))
        self.values = {option: values.split("|") for option, values in
                       re.findall(r"(--[a-z-]+)[ =]([a-z0-9-]+(?:\|[a-z0-9-]+)+)(?![\w|])", usage)}
        self.words = sorted({word for line in usage.split("\n")
                             for words in re.findall(r"funnel %s ([a-z|-]+)" % name, line)
                             for word in words.split("|") if not word.startswith("-")})


def output_of(folder, *arguments):
    return subprocess.run([pathlib.Path(folder) / "funnel", *arguments], stdout=subprocess.PIPE,
                          text=True, check=True, timeout=60).stdout


def read_commands(folder):
    rows = re.findall(r"^  ([a-z-]+) +(.+)$", output_of(folder, "help"), re.M)
    return [Command(folder, *row) for row in rows if row[0] not in ("help", "version")]


def bash_case(command):
    values = "".join(f"        {option}) words='{' '.join(values)}' ;;\n"
                     for option, values in sorted(command.values.items()))
    chosen = f"        case $previous in\n{values}        *) words='" if values else "        words='"
    end = "' ;;\n        esac\n" if values else "'\n"
    return (f"    {command.name})\n{chosen}{' '.join(command.options + command.words)}{end}"
            "        ;;\n")


def bash(commands):
    names = " ".join(command.name for command in commands)
    cases = "".join(bash_case(command) for command in commands)
    return f"""# SPDX-License-Identifier: Apache-2.0
# Completion of funnel in bash, made from `funnel help`.
_funnel() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words='' i
    if [ "$COMP_CWORD" = 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W '{names} help version' -- "$word")
        return
    fi
    if [ "${{COMP_WORDS[1]}}" = {WITH_PROGRAM} ]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [ "${{COMP_WORDS[i]}}" = -- ]; then
                mapfile -t COMPREPLY < <(compgen -c -f -- "$word")
                return
            fi
        done
    fi
    case ${{COMP_WORDS[1]}} in
    help) words='{names}' ;;
{cases}    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    [ "${{#COMPREPLY[@]}}" != 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$word")
}}
complete -F _funnel funnel
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_case(command):
    options = [option + (f":value:({' '.join(command.values[option])})"
                         if option in command.values else "") for option in command.options]
    if command.name == WITH_PROGRAM:
        options.append("*:::program: _normal")
    elif command.words:
        options.append(f"*:word:({' '.join(command.words)})")
    else:
        options.append("*:file:_files")
    return f"    {command.name}) _arguments {' '.join(map(quoted, options))} ;;\n"


def zsh(commands):
    rows = " ".join(quoted(f"{command.name}:{command.summary}") for command in commands)
    cases = "".join(zsh_case(command) for command in commands)
    return f"""#compdef funnel
# SPDX-License-Identifier: Apache-2.0
# Completion of funnel in zsh, made from `funnel help`.
local -a commands=({rows} 'help:help on a command' 'version:print the release')
if ((CURRENT == 2)); then
    _describe command commands
    return
fi
shift words
((CURRENT--))
case $words[1] in
    help) _describe command commands ;;
{cases}esac
"""


def fish_lines(command):
    seen = f"'__fish_seen_subcommand_from {command.name}'"
    yield f"complete -c funnel -f -n __fish_use_subcommand -a {command.name} -d {quoted(command.summary)}"
    for option in command.options:
        kind = "-l " + option[2:] if option.startswith("--") else "-s " + option[1:]
        values = command.values.get(option)
        yield f"complete -c funnel -n {seen} {kind}" + (f" -x -a '{' '.join(values)}'"
                                                        if values else "")
    if command.words:
        yield f"complete -c funnel -f -n {seen} -a '{' '.join(command.words)}'"
    if command.name == WITH_PROGRAM:
        yield f"complete -c funnel -n {seen} -a '(__fish_complete_subcommand)'"


def fish(commands):
    head = ("# SPDX-License-Identifier: Apache-2.0\n"
            "# Completion of funnel in fish, made from `funnel help`.\n"
            "complete -c funnel -f -n __fish_use_subcommand -a help -d 'help on a command'\n"
            "complete -c funnel -f -n __fish_use_subcommand -a version -d 'print the release'\n")
    return head + "\n".join(line for command in commands for line in fish_lines(command)) + "\n"


def main():
    folder, shell, output = sys.argv[1:]
    text = {"bash": bash, "zsh": zsh, "fish": fish}[shell](read_commands(folder))
    pathlib.Path(output).write_text(text)


if __name__ == "__main__":
    main()
