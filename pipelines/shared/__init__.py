"""What the pipelines share: settings, command line, identity of the output, driver."""
