"""Print the pinned requirements of an extra of pyproject.toml, one a line: python tools/requirements.py dev"""

import pathlib
import sys
import tomllib

project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
print("\n".join(project["project"]["optional-dependencies"][sys.argv[1]]))
