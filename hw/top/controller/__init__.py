"""The controller: command checks, chaining, counters."""
