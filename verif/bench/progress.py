"""Shows how far a long step has come: a bar on a terminal, else a line every 20 seconds."""

import sys
import threading
import time
from contextlib import contextmanager

from tqdm import tqdm

LINE_SECONDS = 20
"""Between two lines where the output is no terminal."""


@contextmanager
def watched(title, path=None, interval=0.5):
    """While the body runs, show the time it has taken and, from the file ``path`` if there is one, how much is done.

    The file holds a number from 0 to 1, which the body rewrites as it goes.
    """
    done = threading.Event()
    begin = time.monotonic()
    is_terminal = sys.stderr.isatty()
    form = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}" if path else "{desc}: {elapsed}"
    with tqdm(total=1.0, desc=title, disable=not is_terminal, leave=False, bar_format=form) as bar:

        def follow():
            next_line = begin + LINE_SECONDS
            while not done.wait(interval):
                text = path.read_text() if path and path.exists() else ""
                if is_terminal:
                    bar.n = float(text or 0)
                    bar.refresh()
                elif time.monotonic() >= next_line:
                    share = f"{float(text):.0%}, " if text else ""
                    print(f"{title}: {share}{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
                    next_line += LINE_SECONDS

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
