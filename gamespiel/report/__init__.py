"""What people see of a run: the live display, progress, tables, plots and result files."""
