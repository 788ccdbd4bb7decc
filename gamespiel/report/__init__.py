"""The reports of commands: the console, progress, tables and result files."""
