"""Runs beside one another: their list, their differences and their curves. It needs no PyTorch."""
