"""One runnable module per dataset; each reads top to bottom like its paper's figure."""
