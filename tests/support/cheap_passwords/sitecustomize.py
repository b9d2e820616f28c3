"""Python runs this at the start of an interpreter that has this folder on its PYTHONPATH: it then hashes passwords at
hardly any cost, as programs that `tests.support.launching` forks do.
"""

import argon2.profiles

argon2.profiles.RFC_9106_LOW_MEMORY = argon2.profiles.CHEAPEST
