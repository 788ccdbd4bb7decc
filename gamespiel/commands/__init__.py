"""The commands: what each does with the options that were given."""
