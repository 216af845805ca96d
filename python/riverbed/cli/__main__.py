"""`python -m riverbed.cli`."""

import sys

from riverbed.cli import main

sys.exit(main())
