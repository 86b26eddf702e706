# SPDX-License-Identifier: Apache-2.0
"""One translation unit of several programs on the runtime API: the headers take most of nvcc's time,
and so they are read once. Each program has a namespace of its own. The name of the file that is
executed says whose main() runs, so one executable has as many names as programs.

What a program includes comes before all namespaces; there its own lines find nothing more to include.
So no macro of a program can change what a header does."""
import re

HEAD = """\
#include <cstring>
#include <string>

{includes}

{programs}

int main(int argc, char **argv)
{{
    const char *slash = strrchr(argv[0], '/');
    std::string name = slash ? slash + 1 : argv[0];

{calls}
    return 1;
}}
"""
PROGRAM = """\
namespace {name}_program
{{
#include "{path}"
}}
{undefined}
"""
CALL = """\
    if (name == "{file}")
        return {name}_program::main({arguments});
"""


def included(path, text):
    """Lines that include the same, wherever they stand."""
    for name in re.findall(r"^#include (.*)$", text, re.M):
        yield f'#include "{path.parent / name[1:-1]}"' if name[0] == '"' else f"#include {name}"


def program_part(path, text):
    macros = dict.fromkeys(re.findall(r"^#define (\w+)", text, re.M))
    return PROGRAM.format(name=path.stem, path=path,
                          undefined="\n".join(f"#undef {macro}" for macro in macros))


def call_part(file, path, text):
    takes_arguments = re.search(r"^int main\(int", text, re.M)
    return CALL.format(file=file, name=path.stem,
                       arguments="argc, argv" if takes_arguments else "")


def joint_unit(files):
    """`files` has the path of the source for each name of an executable."""
    texts = {path: path.read_text() for path in files.values()}
    includes = [line for path, text in texts.items() for line in included(path, text)]
    return HEAD.format(
        includes="\n".join(dict.fromkeys(includes)),
        programs="\n".join(program_part(*one) for one in texts.items()),
        calls="\n".join(call_part(file, path, texts[path]) for file, path in files.items()))
