"""Runs the test data of similar systems, which lies beside the project, against Riverbed: `python -m peers --help`.

`judge` says what a record proves, `causes` groups what fails, `records` reads the sqllogictest family, `feldera`,
`flink` and `arroyo` drive views and streams, `worker` is the process that runs one file, and `__main__` starts them
and prints the table.
"""
