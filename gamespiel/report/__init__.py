"""What commands show and keep: the console, progress, tables and result files."""
