"""`python -m tests.support.run_text`: runs the program that is its standard input. It can be forked like the services
(`launching`), as what `python -c` runs cannot.
"""

import sys

exec(sys.stdin.read())
