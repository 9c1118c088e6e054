"""Shared by every folder: errors, files, images, tables, the sandbox, signals, the console."""
