"""``python -m cvxstructreg.crosscheck --problems 10000 --seed 0 --jobs 2 --report out.html``."""

import sys

from cvxstructreg.crosscheck.command import main

if __name__ == "__main__":
    sys.exit(main())
