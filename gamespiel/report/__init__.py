"""The reports of a run: live display, progress, tables, plots and result files."""
