"""Shows how far a simulation has come, from the fraction that it writes to a file."""

import threading
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def watched(path, title, interval=0.5):
    """A progress bar, on a terminal only, that follows the number from 0 to 1 in a file while the body runs."""
    done = threading.Event()
    with tqdm(
        total=1.0, desc=title, disable=None, leave=False, bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}"
    ) as bar:

        def follow():
            while not done.wait(interval):
                text = path.read_text() if path.exists() else ""
                if text:
                    bar.n = float(text)
                    bar.refresh()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
