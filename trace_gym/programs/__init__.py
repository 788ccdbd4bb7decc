"""Sources of programs to trace."""
