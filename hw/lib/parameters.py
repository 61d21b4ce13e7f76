from golden.spec.parameters import *  # noqa: F403  moved; this file goes when nothing imports it any more
