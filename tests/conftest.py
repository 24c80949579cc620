"""Property-test profiles: `dev` is quick, `ci` thorough and the same on every run. Fixtures live beside their tests.

Only those of real servers are known everywhere, since one server serves the whole run.
"""

import os
import signal

from hypothesis import settings

pytest_plugins = ("tests.servers.fixtures",)

# A shell without job control starts what runs behind it with SIGINT ignored, and children would inherit that: commands
# whose tests interrupt them could not be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("dev", max_examples=50, deadline=None)
settings.register_profile("ci", max_examples=300, deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
