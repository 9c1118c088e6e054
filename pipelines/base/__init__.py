"""Shared by the pipelines: settings, command line, identity of the output, driver."""
