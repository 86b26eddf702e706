# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium, which takes commands of the DevTools protocol through a pipe: each
message is JSON that a NUL ends."""
import base64
import json
import os
import select
import signal
import subprocess
import tempfile
import time

TIMEOUT = 60


class Browser:
    """Use it with `with`: it has a page on entry, and the browser ends on exit."""

    def __init__(self, folder, url="about:blank", *options):
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()
        self.unread, self.last_id, self.session = b"", 0, None
        self.url = url

        def to_three_and_four():
            """Where Chromium expects the pipe; copies first, as either number may be in use."""
            ours = os.dup(commands), os.dup(answers)
            os.dup2(ours[0], 3)
            os.dup2(ours[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", f"--user-data-dir={tempfile.mkdtemp(dir=folder)}", *options],
            close_fds=False, preexec_fn=to_three_and_four, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)

    def read(self, deadline):
        while b"\0" not in self.unread:
            if not select.select([self.answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self.answers, 65536)
            if not part:
                raise EOFError("Chromium has ended")
            self.unread += part
        message, _, self.unread = self.unread.partition(b"\0")
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT
        while (answer := self.read(deadline)).get("id") != self.last_id:
            pass
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def __enter__(self):
        target = self.call("Target.createTarget", url=self.url)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return self

    def look(self, width=1280, height=900, scheme="light"):
        """Shows the page as a screen of that size and that scheme of colors does."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.wait(f"innerWidth === {width}")

    def go(self, url, **how):
        """Loads another page."""
        self.look(**how)
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && document.readyState !== 'loading'")

    def key(self, name):
        for kind in "rawKeyDown", "keyUp":
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode={"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowRight": 39}[name])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def value(self, expression):
        """What a JavaScript expression, or a list of statements, gives in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def holds(self, condition):
        """While the page loads, what the condition names may not be there yet."""
        try:
            return self.value(condition)
        except RuntimeError:
            return False

    def wait(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not self.holds(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(condition)
            time.sleep(0.05)
