"""Collects what a simulation finds wrong."""

SHOWN = 8
"""Messages that are stored in full; the others are only counted."""


class Scoreboard:
    """Counts failures and stores the first messages, each with where in the stimulus it happened."""

    def __init__(self):
        self.failed, self.messages, self.where, self.is_silent = 0, [], "start", False

    def report(self, message):
        if self.is_silent:
            return
        self.failed += 1
        if len(self.messages) < SHOWN:
            self.messages.append(f"{self.where}: {message}")

    def result(self):
        return {"failed": self.failed, "messages": self.messages}

    def check(self):
        """Raise an error if anything was reported."""
        if self.failed:
            raise AssertionError("; ".join(self.messages))
