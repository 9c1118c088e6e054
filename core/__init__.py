"""What every folder builds on: errors, files, images, tables, the sandbox, signals, the console."""
