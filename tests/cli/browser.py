# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that tests can click in, by the WebDriver protocol of chromedriver."""
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--no-first-run"]


class Browser:
    """One window; use it with `with`."""

    def __init__(self, profile, size="1200,1600", dark=False):
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.driver.stdout:
            if "on port " in line and "success" in line:
                self.root = "http://127.0.0.1:" + line.split("on port ")[1].strip(" .\n")
                break
        flags = [*FLAGS, f"--window-size={size}", f"--user-data-dir={profile}"]
        if dark:
            flags.append("--force-dark-mode")
        wanted = {"browserName": "chrome", "pageLoadStrategy": "normal",
                  "goog:chromeOptions": {"binary": CHROMIUM, "args": flags}}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.root += "/session/" + made["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.kill()
            self.driver.wait()
            self.driver.stdout.close()

    def call(self, method, path, body=None):
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.root + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()[:500]) from error

    def open(self, uri):
        self.call("POST", "/url", {"url": uri})
        end = time.time() + 60
        while not self.run("return document.body.dataset.ready || ''"):
            if time.time() > end:
                raise AssertionError("the page's script did not come to its end")
            time.sleep(0.1)

    def run(self, script, *words):
        """What a script returns."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(words)})

    def devtools(self, command, **words):
        """A command of Chromium's own, such as one that emulates another screen."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": words})

    def find(self, css):
        found = self.call("POST", "/element", {"using": "css selector", "value": css})
        return next(iter(found.values()))

    def click(self, css):
        self.call("POST", f"/element/{self.find(css)}/click")

    def type(self, css, text):
        self.call("POST", f"/element/{self.find(css)}/value", {"text": text})

    def wheel(self, css, amount):
        """Turns the wheel over the middle of an element."""
        origin = {"element-6066-11e4-a52e-4f735466cecf": self.find(css)}
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "w", "actions": [
            {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": amount, "origin": origin}]}]})

    def drag(self, css, right, down):
        """Presses in the middle of an element, moves and lets go."""
        origin = {"element-6066-11e4-a52e-4f735466cecf": self.find(css)}
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "m", "actions": [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin}, {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": right, "y": down, "origin": "pointer"},
            {"type": "pointerUp", "button": 0}]}]})
