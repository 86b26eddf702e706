# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own, and what that shows. It knows as much as ncurses uses for
TERM=vt100 and TERM=xterm-256color. That is cursor movement, scrolling, inserting, erasing,
repetition, attributes and eight colors."""
import codecs
import fcntl
import html
import os
import pty
import re
import select
import struct
import termios
import time

SEQUENCE = re.compile(r"\x1b\[([0-9;?!>]*)([A-Za-z@])|\x1b[()][A-Z0-9]|\x1b[^[()]")

COLORS = ["#5c6770", "#f0716f", "#8cc265", "#e5c07b", "#6cb0f0", "#c792ea", "#56c7d0", "#d5dde5"]
FOREGROUND, BACKGROUND, REVERSED = "#d5dde5", "#10171e", "#c8d3dc"
WIDTH, HEIGHT = 8, 18  # of a letter, in a picture


class Terminal:
    def __init__(self, command, environment, rows=24, columns=100, kind="vt100"):
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.reverse = [[False] * columns for _ in range(rows)]
        self.colors = [[None] * columns for _ in range(rows)]
        self.color = None
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.row = self.column = self.top = 0
        self.bottom = rows - 1  # of the region that scrolls
        self.reversed = False
        self.rest = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            os.execve(command[0], command, {**environment, "TERM": kind})

    # ---- what the program writes ----

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the program has ended
            return False
        self.take(self.rest + self.decoder.decode(data))
        return bool(data)

    def take(self, text):
        self.rest = ""
        while text:
            match = SEQUENCE.match(text)
            if match:
                if match.group() == "\x1bM":
                    self.go_up()
                self.obey(match.group(1) or "", match.group(2) or "")
                text = text[match.end():]
            elif text[0] == "\x1b":
                self.rest = text
                return
            else:
                self.put(text[0])
                text = text[1:]

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.go_down()
        elif letter == "\b":
            self.column = max(self.column - 1, 0)
        elif letter >= " ":
            self.column = min(self.column, self.columns - 1)
            self.cells[self.row][self.column] = letter
            self.reverse[self.row][self.column] = self.reversed
            self.colors[self.row][self.column] = self.color
            self.column += 1

    def tables(self):
        return (self.cells, " "), (self.reverse, False), (self.colors, None)

    def go_down(self):
        if self.row == self.bottom:
            for table, empty in self.tables():
                del table[self.top]
                table.insert(self.bottom, [empty] * self.columns)
        else:
            self.row = min(self.row + 1, self.rows - 1)

    def go_up(self):
        if self.row == self.top:
            for table, empty in self.tables():
                del table[self.bottom]
                table.insert(self.top, [empty] * self.columns)
        else:
            self.row = max(self.row - 1, 0)

    def obey(self, parameters, letter):
        if not letter or re.search("[?!>]", parameters):
            return
        numbers = [int(n) for n in parameters.split(";") if n]
        first = numbers[0] if numbers else 0
        if letter == "H":
            self.row = min(max(first, 1), self.rows) - 1
            self.column = min(max(numbers[1] if len(numbers) > 1 else 1, 1), self.columns) - 1
        elif letter in "ABCD":
            down, right = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1)}[letter]
            self.row = min(max(self.row + down * max(first, 1), 0), self.rows - 1)
            self.column = min(max(self.column + right * max(first, 1), 0), self.columns - 1)
        elif letter == "G":
            self.column = min(max(first, 1), self.columns) - 1
        elif letter == "d":
            self.row = min(max(first, 1), self.rows) - 1
        elif letter == "b":
            for _ in range(first):
                self.put(self.cells[self.row][self.column - 1])
        elif letter in "@P":
            self.shift(max(first, 1), letter == "@")
        elif letter == "X":
            self.erase(self.row, range(self.column, min(self.column + first, self.columns)))
        elif letter == "K":
            span = range(self.column + 1) if first == 1 else range(self.column, self.columns)
            self.erase(self.row, span)
        elif letter == "J":
            self.erase(self.row, range(self.column, self.columns))
            for row in range(self.row + 1, self.rows):
                self.erase(row, range(self.columns))
        elif letter == "r":
            self.top = max(first, 1) - 1
            self.bottom = min(numbers[1] if len(numbers) > 1 else self.rows, self.rows) - 1
        elif letter == "m":
            self.set_attributes(numbers or [0])

    def set_attributes(self, numbers):
        for number in numbers:
            if number in (0, 27):
                self.reversed = False
            if number in (0, 39):
                self.color = None
            if number == 7:
                self.reversed = True
            if 30 <= number <= 37:
                self.color = number - 30

    def shift(self, count, inserts):
        """Puts empty cells before the cursor's, or takes cells away."""
        for table, empty in self.tables():
            line = table[self.row]
            rest = line[self.column:]
            rest = [empty] * count + rest if inserts else rest[count:] + [empty] * count
            table[self.row] = line[:self.column] + rest[:self.columns - self.column]

    def erase(self, row, span):
        for column in span:
            self.cells[row][column] = " "
            self.reverse[row][column] = False
            self.colors[row][column] = None

    # ---- what it shows ----

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def highlighted(self):
        """Lines in reverse video."""
        return [line for line, marks in zip(self.lines(), self.reverse) if marks[0]]

    def runs(self, row):
        """Stretches of one look: (column, text, color, whether reversed)."""
        column = 0
        while column < self.columns:
            look = self.colors[row][column], self.reverse[row][column]
            end = column
            while end < self.columns and (self.colors[row][end], self.reverse[row][end]) == look:
                end += 1
            yield column, "".join(self.cells[row][column:end]), *look
            column = end

    def svg(self):
        """What is shown, as a picture."""
        shapes = []
        for row in range(self.rows):
            y = 12 + row * HEIGHT
            for column, text, color, reverse in self.runs(row):
                x = 8 + column * WIDTH
                if reverse:
                    shapes.append(f'<rect x="{x}" y="{y}" width="{len(text) * WIDTH}" '
                                  f'height="{HEIGHT}" fill="{REVERSED}"/>')
                fill = BACKGROUND if reverse else FOREGROUND if color is None else COLORS[color]
                if text.strip():
                    shapes.append(f'<text x="{x}" y="{y + 13}" fill="{fill}" xml:space="preserve" '
                                  f'textLength="{len(text.rstrip()) * WIDTH}">'
                                  f'{html.escape(text.rstrip())}</text>')
        size = f'width="{self.columns * WIDTH + 16}" height="{self.rows * HEIGHT + 24}"'
        return ("<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" '
                f'font-size="13">\n<rect {size} rx="6" fill="{BACKGROUND}"/>\n' +
                "\n".join(shapes) + "\n</svg>\n")

    def wait(self, condition, seconds=60):
        """Until the condition holds for what is shown; else what was shown."""
        end = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError("not shown:\n" + "\n".join(self.lines()))

    def wait_for(self, text, seconds=60):
        self.wait(lambda _: any(text in line for line in self.lines()), seconds)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for_end(self):
        while self.read(1):
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return status
